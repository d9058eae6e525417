"""Hidden Markov models with Gaussian emissions, fitted by EM."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from maxent._inputs.sequences import Sequences
from maxent._support import validation as v
from maxent._support.typing import Callback
from maxent.families import (
    DiagonalGaussian,
    Gaussian,
    SphericalGaussian,
    TiedGaussian,
    _checks,
)
from maxent.families.gaussian import AnyGaussian
from maxent.models._chain_input import (
    Array,
    RandomStarts,
    check_chain,
    check_init,
    check_kind,
    single_series,
    warn_of_short,
)
from maxent.models._components import constant_columns
from maxent.models.base import FitsOfEach
from maxent.models.chains._emissions import Emissions, Rows
from maxent.models.chains.hidden_markov import HiddenMarkovModel

FAMILIES: dict[str, type[Any]] = {
    "full": Gaussian,
    "diagonal": DiagonalGaussian,
    "spherical": SphericalGaussian,
    "tied": TiedGaussian,
}
_REMEDY = "Add a ridge to its diagonal, or pass variances (n_states, d)."


class GaussianHMM(HiddenMarkovModel):
    """Hidden Markov model of sequences of vectors.

    Parameters
    ----------
    start : array-like (n_states,)
        Probabilities of the first state.
    transition : array-like (n_states, n_states)
        ``transition[i, j]``: probability of state j after state i; rows sum to one.
    mean : array-like (n_states, d)
        Means of the observations in each state.
    cov : array-like (n_states, d, d), (n_states, d) or (n_states,)
        Covariance matrices; or variances of independent coordinates; or one variance
        for all coordinates of a state.
    tied : bool, default=False
        One covariance matrix for all states, `cov` (d, d) or equal matrices, which then
        counts once and stays one in fits.

    Attributes
    ----------
    start, transition, mean, cov : ndarray
    emission : Gaussian, DiagonalGaussian, SphericalGaussian or TiedGaussian
        The batch of the states' distributions.
    fit_result : EMResult or None
        How the fit ended.

    See Also
    --------
    CategoricalHMM : Sequences of symbols.

    Notes
    -----
    A missing observation, a row of NaN, leaves the step's state free. Of a row that is
    NaN in part, the rest is observed; a fit takes the missing part at its expectation,
    with its covariance.

    References
    ----------
    Rabiner (1989), sections III to V.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.models import GaussianHMM
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(np.repeat([0.0, 5.0, 0.0], 30)[:, None])
    >>> model = GaussianHMM.fit([x], 2, random_state=0)
    >>> np.abs(np.sort(model.mean[:, 0]) - [0, 5]).max() < 0.5
    np.True_
    >>> paths, _ = model.viterbi([x])
    >>> int(np.count_nonzero(np.diff(paths[0])))
    2
    """

    # on series of 60 to 150 steps machines on models of tol=1e-8 were no better, in two
    # to four times the time; with 1e-4 some were worse
    _fits_of_each = FitsOfEach(looser={"tol": 1e-5})
    _names = ("start", "transition", "mean", "cov", "tied")
    mean: Array
    cov: Array
    tied: bool

    def __init__(
        self,
        start: ArrayLike,
        transition: ArrayLike,
        mean: ArrayLike,
        cov: ArrayLike,
        tied: bool = False,
    ) -> None:
        tied = v.check_bool("tied", tied)
        first, rows = check_chain(start, transition)
        mean, cov = v.as_doubles("mean", mean), v.as_doubles("cov", cov)
        if mean.ndim != 2:  # one vector would be the mean of every state
            raise ValueError(
                f"mean has shape {mean.shape}; (n_states, n_features) is expected, as "
                "[[0], [1]] of two states and one feature."
            )
        if tied and cov.ndim not in (2, 3):
            raise ValueError(
                f"cov has shape {cov.shape}; tied=True takes one matrix (d, d)."
            )
        if cov.ndim == 3:
            cov, _ = _checks.positive_definite_array("cov", cov, _REMEDY)
        emission = TiedGaussian(mean, cov) if tied else _gaussians(mean, cov)
        if emission.batch_shape != first.shape:
            raise ValueError(
                f"mean and cov are of {emission.batch_shape} states; start has "
                f"{len(first)}."
            )
        self._set(
            start=first,
            transition=rows,
            mean=emission.mean,
            cov=emission._covariances(),
            tied=tied,
        )
        self.__dict__["emission"] = emission

    @property
    def n_features(self) -> int:
        """Size d of an observation."""
        return int(self.mean.shape[1])

    @property
    def covariance_type(self) -> Literal["full", "diagonal", "spherical", "tied"]:
        """Kind of the covariances: "tied", or by the number of axes of `cov`."""
        if self.tied:
            return "tied"
        kinds = {3: "full", 2: "diagonal", 1: "spherical"}
        return kinds[self.cov.ndim]  # type: ignore[return-value]

    def _holdable(self):
        own = (self.n_states,)
        return super()._holdable() | {"mean": own, "cov": own}

    def _arguments(self):
        return self.parameters()

    @classmethod
    def _from_arguments(cls, arguments):
        return cls(**arguments)

    @classmethod
    def _of_point(cls, point, emissions):
        start, transition, emission = point
        tied = isinstance(emission, TiedGaussian)
        return cls(start, transition, emission.mean, emission._covariances(), tied)

    # -- fits ----------------------------------------------------------------------
    @classmethod
    def fit(  # type: ignore[override]  # the family is given
        cls,
        sequences: Any,
        n_states: int | None = None,
        *,
        lengths: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        covariance_type: Literal["full", "diagonal", "spherical", "tied"] = "full",
        smoothing: Any = 0.01,
        zeta: float = 0.1,
        init: GaussianHMM | None = None,
        fixed: Any = None,
        states: Any = None,
        n_init: int = 3,
        tol: float = 1e-8,
        max_iter: int = 2000,
        callback: Callback | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> Self:
        """Fit by EM (Baum-Welch) from several starts by clustering.

        Parameters
        ----------
        sequences : list of array-like (n_steps, d), or array-like (n, d)
            NaN where an entry, or a whole row, was not observed.
        n_states : int, optional
            None takes :func:`states_per_sequence` of the mean length, with the free
            parameters of an emission plus one in the place of the alphabet's size; more
            than 20 are refused by `fit`, and `fit_many` takes 20.
        lengths : array-like of int, optional
            Lengths of the sequences in one array.
        weights : array-like (n_sequences,), optional
            Weights >= 0; weight 2 equals the sequence twice.
        covariance_type : {"full", "diagonal", "spherical", "tied"}, default="full"
            "tied" is one matrix for all states.
        smoothing : float or dict, default=0.01
            Pseudo-counts >= 0 of every entry of start and transition, and
            pseudo-observations of every state about its own mean: a state that takes n
            observations with covariance C gets ``(n C + c W) / (n + c)``, W the
            covariance within the groups of the start, whatever their distance, and c
            `smoothing` or, for full covariances, (d + 2) / 3 of it. With 0 the
            likelihood may be unbounded. A dict has a number for "start", "transition"
            and "emission", or for the first two an array of their shape.
        zeta : float, default=0.1
            Free parameters per step where `n_states` is None.
        init : GaussianHMM, optional
            Start of a single run, whose `covariance_type` is kept; `n_states` must
            be its own then, and `n_init` is not read. Its probabilities of zero stay
            zero: a left-right chain stays one.
        fixed : str, list of str, or dict, optional
            Parameters that stay as in `init`: "start", "transition", "mean", "cov",
            "emission" (both of a state); or {name: boolean mask}, True where an entry
            (a state, of the last three) stays.
        states : list of array-like of int (n_steps,), optional
            States that are known, -1 where not; of one sequence, its array. Starts are
            put into their order.
        n_init : int, default=3
            Starts, as those of :class:`Mixture` for the observations and by windows of
            rows, the best of them once more by the objective of the chain; of more than
            three, half have random moves. The run of the greatest objective is kept;
            one that is far behind may end early.
        tol : float, default=1e-8
            Relative, of all data together and not per value: a run ends once a step
            gains at most ``tol * (1 + |objective|)`` nats, where the objective is their
            log-likelihood plus the logarithm of the prior, up to a constant. That of
            densities depends on the units of the data: near zero the rule is strictest.
            With 1e-6 fits of more states than the data show take a third to a tenth of
            the time; states that differ little may not be told apart then, as EM leaves
            a start where they are alike by small steps.
        max_iter : int, default=2000
            EM steps of a run at most.
        callback : callable(n_iter, objective, gain), optional
            Called after every E step of every start, which may take turns; True ends
            the fit with the best parameters until then.
        random_state : int, Generator, RandomState or None, default=None
            Source of the starts.
        n_jobs : int, optional
            Threads of the E step.

        Returns
        -------
        GaussianHMM
            Its `fit_result` has the objective after every step.

        Raises
        ------
        ValueError
            If a column of the data is constant, `n_states` is None for series that are
            too long for it, or a covariance becomes singular with
            ``smoothing=0``.

        Warns
        -----
        ConvergenceWarning
            If the kept run reached `max_iter`, or its objective fell by more than
            rounding.
        UserWarning
            If none of several sequences has two steps: no transition is learnt.
        """
        v.check_choice("covariance_type", covariance_type, tuple(FAMILIES))
        if init is None:
            emissions: Emissions = Rows(FAMILIES[covariance_type])
        else:
            check_init(init, cls, n_states)
            emissions = init._emissions
        model = cls._fitted(
            emissions,
            sequences,
            RandomStarts(n_states, zeta, n_init, random_state),
            lengths=lengths,
            weights=weights,
            rules=cls._rules(smoothing, fixed, init),
            states=states,
            init=init,
            ends=(tol, max_iter, callback),
            n_jobs=n_jobs,
        )
        return model._warned(tol, max_iter)

    @classmethod
    def _each(cls, data: Any, options: dict[str, Any]) -> list[Sequences]:
        series = single_series(data, options)
        _refuse_flat_series(series)
        if options.get("n_states") != 1 and "init" not in options:
            lengths = np.array([len(one.values) for one in series])
            warn_of_short(data, lengths)
        return series

    # -- hmmlearn --------------------------------------------------------------------
    @classmethod
    def from_hmmlearn(cls, model: Any) -> Self:
        """Model from a fitted ``hmmlearn.hmm.GaussianHMM``.

        Parameters
        ----------
        model : hmmlearn.hmm.GaussianHMM
            Of any covariance type.

        Returns
        -------
        GaussianHMM
        """
        check_kind(model, "GaussianHMM", "means_")
        cov = np.asarray(model.covars_)  # always matrices, whatever the type
        if model.covariance_type == "diag":
            cov = np.diagonal(cov, axis1=1, axis2=2)
        elif model.covariance_type == "spherical":
            # a fit leaves d equal matrices for every state, an assignment one
            cov = cov.reshape(len(model.means_), -1)[:, 0]
        tied = model.covariance_type == "tied"
        return cls(model.startprob_, model.transmat_, model.means_, cov, tied)


def _gaussians(mean: ArrayLike, cov: ArrayLike) -> AnyGaussian:
    """Batch of Gaussians of the kind that the axes of `cov` say."""
    shape = v.as_doubles("cov", cov).shape
    kinds: dict[int, Callable[[ArrayLike, ArrayLike], AnyGaussian]]
    kinds = {1: SphericalGaussian, 2: DiagonalGaussian, 3: Gaussian}
    family = kinds.get(len(shape))
    if family is None:
        raise ValueError(
            f"cov has shape {shape}; (n_states, d, d), (n_states, d) or (n_states,) is "
            "expected."
        )
    return family(mean, cov)


def _refuse_flat_series(series: list[Sequences]) -> None:
    """Refuse series that have no variance in a column, all of them in one message."""
    flat = []
    for i, one in enumerate(series):
        rows = one.values[~np.isnan(one.values).all(axis=1)]
        if len(rows) < 2 or np.isnan(rows).all(axis=0).any():
            continue  # its fit says what is wrong
        constant = constant_columns(rows)
        if constant.any():
            flat.append((i, int(np.argmax(constant))))
    if flat:
        i, j = flat[0]
        others = ", ".join(str(k) for k, _ in flat[:10])
        more = ", ..." if len(flat) > 10 else ""
        raise ValueError(
            f"data[{i}]: column {j} is constant, so its variance is zero. Series with "
            f"such a column: {others}{more} ({len(flat)} of {len(series)}). "
            "Leave these series out, drop the column of all, or add noise of the size "
            "of its resolution to all."
        )
