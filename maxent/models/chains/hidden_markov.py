"""Hidden Markov models over the distributions of any family."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxent._inputs.sequences import Sequences, each_entry
from maxent._inputs.text_columns import coded
from maxent._partitions.partitions import is_partitioned
from maxent._support import validation as v
from maxent._support.registry import rebuilt
from maxent._support.typing import Callback
from maxent.families import (
    Categorical,
    ExponentialFamily,
    Gaussian,
)
from maxent.families.base import family_named
from maxent.models._chain_input import (
    Array,
    RandomStarts,
    alphabet_size,
    check_chain,
    check_init,
    columns_of,
    sequence_weights,
    warn_of_short,
)
from maxent.models._criteria import (
    NONE_HELD,
    InformationCriteria,
    free_of_batch,
    free_probabilities,
)
from maxent.models._family_choice import Family, categories_of, family_of_columns
from maxent.models._online import (
    mixed,
    refuse_without_sums,
    share_of_batch,
    visits,
)
from maxent.models.base import one_of_many
from maxent.models.chains._answers import ChainAnswers
from maxent.models.chains._emission_choice import emissions_of, emissions_to_fit
from maxent.models.chains._emissions import Emissions
from maxent.models.chains._hidden_chain import (
    Observations,
    Point,
    fitted_chain,
    logs_of,
)
from maxent.models.chains._hmmlearn import emission_of_peer, peer_of
from maxent.models.chains._partitioned_chains import PartitionedChains
from maxent.models.chains._rules import Rules, check_counts, known_states, only_known
from maxent.models.mixtures import Mixtures


class HiddenMarkovModel(ChainAnswers, InformationCriteria):
    """Hidden Markov model whose states show rows of any family.

    Parameters
    ----------
    start : array-like (n_states,)
        Probabilities of the first state.
    transition : array-like (n_states, n_states)
        ``transition[i, j]``: probability of state j after state i; rows sum to one.
    emission : family batch (n_states,), or Mixtures
        Distributions of what the states show: numbers, vectors, or the codes of a
        Categorical; or :class:`Mixtures` of such.

    Attributes
    ----------
    start, transition : ndarray
    emission : ExponentialFamily or Mixtures
    fit_result : EMResult or None
        How the fit ended.

    See Also
    --------
    CategoricalHMM : Symbols, with letters.
    GaussianHMM : Vectors, with entries missing in part.

    Notes
    -----
    A step of NaN (code -1 of symbols) shows nothing and leaves its state free.

    References
    ----------
    Rabiner (1989), sections III and V; Jebara, Kondor & Howard (2004), section 4.2.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.families import Poisson
    >>> from maxent.models import HiddenMarkovModel
    >>> stay = [[0.95, 0.05], [0.05, 0.95]]
    >>> model = HiddenMarkovModel([0.5, 0.5], stay, Poisson([2.0, 20.0]))
    >>> counts = model.sample(1, 400, random_state=0)
    >>> fitted = HiddenMarkovModel.fit(counts, 2, family=Poisson, random_state=0)
    >>> np.sort(fitted.emission.rate).round(0)
    array([ 2., 20.])
    """

    _data = "series"
    _names: ClassVar[tuple[str, ...]] = ("start", "transition", "emission")
    start: Array
    transition: Array
    emission: Any

    def __init__(
        self,
        start: ArrayLike,
        transition: ArrayLike,
        emission: ExponentialFamily | Mixtures,
    ) -> None:
        first, rows = check_chain(start, transition)
        if not isinstance(emission, (ExponentialFamily, Mixtures)):
            raise TypeError(
                f"emission={v.shown(emission)} must be a batch of a family, for "
                "instance maxent.families.Poisson(rates), or of Mixtures."
            )
        if emission.batch_shape != first.shape or len(emission.event_shape) > 1:
            raise ValueError(
                f"emission is a batch of shape {emission.batch_shape} of events of "
                f"shape {emission.event_shape}; numbers or vectors for each of the "
                f"{len(first)} states are expected."
            )
        self._set(start=first, transition=rows, emission=emission)

    @property
    def n_states(self) -> int:
        """Number of hidden states."""
        return len(self.start)

    def _arguments(self):
        return {
            **self.parameters(),
            "family": type(self.emission).__name__,
            "emission": self.emission.get_spec(),
        }

    @classmethod
    def _from_arguments(cls, arguments):
        arguments = dict(arguments)
        name = arguments.pop("family")
        kind = Mixtures if name == Mixtures.__name__ else family_named(name)
        return cls(**{**arguments, "emission": rebuilt(kind, arguments["emission"])})

    # -- data ----------------------------------------------------------------------
    @functools.cached_property
    def _emissions(self) -> Emissions:
        """Reader of sequences of this model, with their log-likelihoods."""
        return emissions_of(self.emission, self._columns)

    def _read(
        self, sequences: Any, lengths: ArrayLike | None = None, partly: bool = False
    ) -> Sequences:
        """Sequences that fit this model; `partly` with rows missing in part."""
        sequences = coded(sequences, self.categories)
        return self._emissions.read(sequences, lengths, partly)

    def _observations(self, sequences: Sequences) -> Observations:
        """Sequences as rows of `_log_table`."""
        return self._emissions.observations(sequences)

    def _log_table(self, sequences: Sequences) -> Array:
        """Log-likelihoods (rows, n_states) of what the steps show."""
        return self._emissions.log_table(self.emission, sequences)

    # -- inference -----------------------------------------------------------------
    def log_likelihood(
        self,
        sequences: Any,
        lengths: ArrayLike | None = None,
        *,
        n_jobs: int | None = None,
    ) -> Array:
        """Log-likelihood of every sequence.

        Parameters
        ----------
        sequences : list of sequences, array-like, or path of symbols
            As for `fit`.
        lengths : array-like of int, optional
            Lengths of the sequences in one array.
        n_jobs : int, optional
            Threads; the result has the same bits for any number.

        Returns
        -------
        ndarray (n_sequences,)
            In nats; -inf of a sequence that the model cannot produce.
        """
        found, seen = self._seen(sequences, lengths)
        table = self._log_table(found)
        counts = seen.expect(self.start, self.transition, table, None, n_jobs)
        return counts.log_likelihood

    def posterior(
        self,
        sequences: Any,
        lengths: ArrayLike | None = None,
        *,
        states: Any = None,
        n_jobs: int | None = None,
    ) -> list[Array]:
        """Posterior probabilities of the states at every step.

        Parameters
        ----------
        sequences, lengths, n_jobs
            As for `log_likelihood`.
        states : list of array-like of int (n_steps,), optional
            States that are known, -1 where not; of one sequence, its array.

        Returns
        -------
        list of ndarray (n_steps, n_states)
            One for each sequence; rows sum to one.

        Raises
        ------
        ValueError
            If the model cannot produce a sequence; it is named.
        """
        found, seen = self._seen(sequences, lengths)
        # a row for every step, those without an observation included
        table, row = self._log_table(found), seen.row
        log_table = table  # of steps, zero where nothing was observed
        if seen.shared:
            log_table = table[row]
            log_table[row < 0] = 0.0
        if states is not None:
            known = known_states(states, found, self.n_states)
            log_table = only_known(log_table, known)
        steps = Observations(found, np.arange(len(row)), shared=False)
        counts = steps.expect(
            self.start, self.transition, log_table, np.ones(len(found)), n_jobs
        )
        impossible = np.isneginf(counts.log_likelihood)
        if impossible.any():
            raise ValueError(
                f"sequences[{int(np.argmax(impossible))}] has probability 0 under the "
                "model, so its states have no posterior; fit with smoothing > 0."
            )
        return list(Sequences(counts.emission, found.offsets))

    def viterbi(
        self,
        sequences: Any,
        lengths: ArrayLike | None = None,
        *,
        n_jobs: int | None = None,
    ) -> tuple[list[NDArray[np.intp]], Array]:
        """Most likely state path of every sequence.

        Parameters
        ----------
        sequences, lengths, n_jobs
            As for `log_likelihood`.

        Returns
        -------
        paths : list of ndarray of int (n_steps,)
            Ties go to the state of the lowest number.
        log_prob : ndarray (n_sequences,)
            Log-probability of path and sequence together.
        """
        found, seen = self._seen(sequences, lengths)
        table = self._log_table(found)
        chain_in_logs = logs_of(self.start, self.transition)
        path, log_prob = seen.viterbi(*chain_in_logs, table, n_jobs)
        return list(Sequences(path, found.offsets)), log_prob

    def _read_all(self, sequences, lengths):
        return self._read(sequences, lengths, partly=True)

    def _free_parameters(self, held=NONE_HELD):
        chain = free_probabilities(self.start, held.get("start"))
        chain += free_probabilities(self.transition, held.get("transition"))
        return chain + free_of_batch(self.emission, held, "emission")

    def _seen(self, sequences, lengths):
        found = self._read_all(sequences, lengths)
        return found, self._observations(found)

    def with_component_states(self) -> HiddenMarkovModel:
        """Return the same law with a state for every component of the states' mixtures.

        Returns
        -------
        HiddenMarkovModel
            Of ``n_states * n_components`` states, those of state 0 first, that show
            distributions of the family. This model itself where its states show no
            mixtures.

        Examples
        --------
        >>> from maxent.families import Poisson
        >>> from maxent.models import HiddenMarkovModel, Mixtures
        >>> shown = Mixtures([[0.5, 0.5], [0.9, 0.1]], Poisson([[1, 4], [9, 20]]))
        >>> model = HiddenMarkovModel([1, 0], [[0.9, 0.1], [0.1, 0.9]], shown)
        >>> model.with_component_states().start
        array([0.5, 0.5, 0. , 0. ])
        """
        shown = self.emission
        if not isinstance(shown, Mixtures):
            return self
        start = (self.start[:, None] * shown.weights).ravel()
        moves = (self.transition[:, :, None] * shown.weights).reshape(self.n_states, -1)
        moves = np.repeat(moves, shown.n_components, axis=0)
        model = HiddenMarkovModel(start, moves, shown.members)
        return model._with_names(self._columns)._with_categories(self.categories)

    # -- hmmlearn --------------------------------------------------------------------
    @classmethod
    def from_hmmlearn(cls, model: Any) -> HiddenMarkovModel:
        """Model from a fitted Poisson, multinomial or mixture model of hmmlearn.

        Parameters
        ----------
        model : hmmlearn.hmm.PoissonHMM, MultinomialHMM or GMMHMM
            The others are taken by :class:`GaussianHMM` and :class:`CategoricalHMM`.

        Returns
        -------
        HiddenMarkovModel
            Of Poisson counts, one column or independent ones; of multinomial counts; or
            of mixtures of Gaussians.
        """
        emission = emission_of_peer(model)
        return HiddenMarkovModel(model.startprob_, model.transmat_, emission)

    def to_hmmlearn(self) -> Any:
        """Return this model as one of hmmlearn, whose scores are the same.

        Returns
        -------
        hmmlearn.hmm.CategoricalHMM, GaussianHMM, PoissonHMM, MultinomialHMM or GMMHMM
            Fitted, with hmmlearn's default settings: of categories, Gaussians of any
            covariances, Poisson counts in one column or independent ones, multinomial
            counts, and mixtures of Gaussians. Mixtures with tied covariances are
            written as full ones.

        Raises
        ------
        ImportError
            If hmmlearn is not installed.
        TypeError
            For emissions that hmmlearn lacks.
        """
        out = peer_of(self)
        out.startprob_, out.transmat_ = np.array(self.start), np.array(self.transition)
        return out

    # -- fits ----------------------------------------------------------------------
    @classmethod
    def fit(
        cls,
        sequences: Any,
        n_states: int | None = None,
        *,
        lengths: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        family: Family = Gaussian,
        n_components: int = 1,
        smoothing: Any = 0.01,
        zeta: float = 0.1,
        init: HiddenMarkovModel | None = None,
        fixed: Any = None,
        states: Any = None,
        n_init: int = 3,
        tol: float = 1e-8,
        max_iter: int = 2000,
        callback: Callback | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        family_options: dict[str, Any] | None = None,
    ) -> Self:
        """Fit by EM (Baum-Welch) from several starts by clustering.

        Parameters
        ----------
        sequences : list of array-like (n_steps, event), or array-like (n, event)
            Numbers, vectors, or codes of a Categorical; NaN (code -1) where nothing was
            observed.
        n_states : int, optional
            None takes :func:`states_per_sequence` of the mean length, with the free
            parameters of an emission plus one in the place of the alphabet's size; more
            than 20 are refused by `fit`, and `fit_many` takes 20.
        lengths : array-like of int, optional
            Lengths of the sequences in one array.
        weights : array-like (n_sequences,), optional
            Weights >= 0; weight 2 equals the sequence twice.
        family : class or dict, default=Gaussian
            Of what the states show, as of :class:`Mixture`: a class with a `fit` to
            weighted rows, whose columns are independent if it is of numbers, or
            {columns: class}.
        n_components : int, default=1
            Components of the mixture of `family` that each state shows, where more than
            one: `emission` are then :class:`Mixtures`.
        smoothing : float or dict, default=0.01
            Pseudo-counts >= 0 of every entry of start and transition, and
            pseudo-observations of every state: of Gaussians about the state's own mean,
            of other families distributed like the rows of its group at the start. Of
            mixtures they are those of every component, and of the weights.
            A dict has a number for "start", "transition" and "emission", or an array of
            their shape: ``{"transition": 1 + 50 * numpy.eye(3)}`` lets states last.
        zeta : float, default=0.1
            Free parameters per step where `n_states` is None.
        init : HiddenMarkovModel, optional
            Start of a single run, whose family is kept; `n_states` and `n_components`
            must be its own if given, and `n_init` is not read. Its probabilities of
            zero stay zero.
        fixed : str, list of str, or dict, optional
            Parameters that stay as in `init`: "start", "transition", "emission"; or
            {name: boolean mask}, True where an entry (of "emission", a state) stays.
        states : list of array-like of int (n_steps,), optional
            States that are known, -1 where not; of one sequence, its array. Starts are
            put into their order.
        n_init : int, default=3
            Starts, as those of :class:`Mixture` for the observations and by windows of
            rows, the best of them once more by the objective of the chain; of more than
            three, half have random moves. Symbols have random tables. The run of the
            greatest objective is kept; one that is far behind may end early.
        tol : float, default=1e-8
            Relative, of all data together and not per value: a run ends once a step
            gains at most ``tol * (1 + |objective|)`` nats, where the objective is their
            log-likelihood plus the logarithm of the prior, up to a constant.
        max_iter : int, default=2000
            EM steps of a run at most.
        callback : callable(n_iter, objective, gain), optional
            Called after every E step of every start, which may take turns; True ends
            the fit with the best parameters until then.
        random_state : int, Generator, RandomState or None, default=None
            Source of the starts.
        n_jobs : int, optional
            Threads of the E step.
        family_options : dict, optional
            Further arguments of the family's `fit`, such as ``n_categories``.

        Returns
        -------
        HiddenMarkovModel
            Its `fit_result` has the objective after every step.

        Raises
        ------
        ValueError
            If a row is outside the support of the family, `n_states` is None for series
            that are too long for it, or a state has no maximum-likelihood fit with
            ``smoothing=0``.

        Warns
        -----
        ConvergenceWarning
            If the kept run reached `max_iter`, or its objective fell by more than
            rounding.
        UserWarning
            If none of several sequences has two steps: no transition is learnt.
        """
        if isinstance(sequences, Iterator):
            sequences = list(sequences)
        if init is not None:
            check_init(init, cls, n_states)
        categories = (
            categories_of(family, sequences) if init is None else init.categories
        )
        sequences = coded(sequences, categories)
        if init is None:
            own = family_of_columns(family, family_options, *columns_of(sequences))
            emissions = emissions_to_fit(*own, n_components)
        else:
            emissions = init._emissions
            shown = getattr(emissions, "n_components", 1)
            if n_components not in (1, shown):
                raise ValueError(
                    f"n_components={v.shown(n_components)} but a state of init has "
                    f"{shown}."
                )
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
        return model._with_categories(categories)._warned(tol, max_iter)

    def update(
        self,
        sequences: Any,
        lengths: ArrayLike | None = None,
        *,
        weights: ArrayLike | None = None,
        step: float | None = None,
        smoothing: Any = 0.0,
        n_jobs: int | None = None,
    ) -> Self:
        """Model after one more batch of sequences, by one step of online EM.

        Parameters
        ----------
        sequences, lengths
            As for `fit`; what a row misses is expected given the rest of it.
        weights : array-like (n_sequences,), optional
            Weights >= 0 of the sequences.
        step : float, optional
            Share in (0, 1] of the batch in the statistics after it; 1 forgets all
            sequences before. None is the share of the batch's steps in all steps so
            far, to the power 0.6.
        smoothing : float or dict, default=0.0
            Pseudo-counts >= 0 of start and transition, and of tables of symbols.
        n_jobs : int, optional
            Threads; the result has the same bits for any number.

        Returns
        -------
        model
            A new one, of the same class; it knows the number of steps that it has seen
            and how often its states were visited, also in its file.

        Raises
        ------
        ValueError
            If the model cannot produce a sequence, or the fits of the family are no
            functions of sums over rows.

        Notes
        -----
        The memory does not grow with the number of batches. The likelihood of all
        sequences may fall in a step. A model made by its constructor has seen no step,
        so that its first update is one step of EM on the batch.

        References
        ----------
        Cappé & Moulines (2009), On-line expectation-maximization algorithm for latent
        data models.

        Examples
        --------
        >>> from maxent.families import Poisson
        >>> from maxent.models import HiddenMarkovModel
        >>> stay = [[0.9, 0.1], [0.1, 0.9]]
        >>> truth = HiddenMarkovModel([0.5, 0.5], stay, Poisson([2.0, 20.0]))
        >>> model = HiddenMarkovModel([0.5, 0.5], stay, Poisson([4.0, 10.0]))
        >>> for seed in range(20):
        ...     model = model.update(truth.sample(2, 100, random_state=seed))
        >>> model.emission.rate.round()
        array([ 2., 20.])
        """
        emissions = self._emissions
        if not emissions.shared:
            refuse_without_sums(getattr(self.emission, "members", self.emission))
        found = self._read(sequences, lengths, partly=True)
        own_weights = sequence_weights(weights, len(found))
        rules = Rules(smoothing)
        problem = emissions.part(found, own_weights)
        problem.n_jobs = n_jobs
        point = self.start, self.transition, self.emission
        counts, _, _ = problem.expected(point)
        if np.isneginf(counts.log_likelihood[own_weights > 0]).any():
            i = int(np.argmax(np.isneginf(counts.log_likelihood)))
            raise ValueError(
                f"sequences[{i}] has probability 0 under the model, so its states have "
                "no posterior; leave it out."
            )
        new = float(own_weights @ found.lengths)
        sums = problem.sums(counts.emission, self.emission)
        batch = counts.start / new, counts.transition / new, *(s / new for s in sums)
        known = self._rows_seen or {}
        rows = known.get("rows", 0.0)
        own = self._own_statistics(known, float(own_weights.sum()) / new)
        statistics = mixed(share_of_batch(step, rows, new), own, batch)
        (start, moves), sums = statistics[:2], statistics[2:]
        rows += new
        shown = emissions.shown(sums)
        following = (
            rules.maximum("start", rows * start, self.start),
            rules.maximum("transition", rows * moves, self.transition),
            emissions.refitted(self.emission, sums, rows, rules),
        )
        model = self._of_point(following, emissions)._with_seen(
            rows=rows, starts=float(start.sum()), moves=moves.sum(axis=1), shown=shown
        )
        model._with_names(self._columns)._with_count(self._count)
        return model._with_categories(self.categories)

    def _own_statistics(self, known, starts):
        """Statistics of one step by the parameters, and what the model has seen."""
        starts = known.get("starts", starts)
        moves, shown = visits(self.start, self.transition, 1.0 / starts)
        moves, shown = known.get("moves", moves), known.get("shown", shown)
        sums = self._emissions.own_sums(self.emission, shown)
        return starts * self.start, moves[:, None] * self.transition, *sums

    @classmethod
    def _fitted(
        cls, emissions, sequences, asked, *, lengths, weights, rules, states, init,
        ends, n_jobs,
    ):  # fmt: skip
        """Model of a fit, from arguments that are checked here."""
        ends = (*v.check_stop(*ends[:2]), ends[2])
        own = None if init is None else (init.start, init.transition, init.emission)
        if is_partitioned(sequences):
            _check_partitioned(rules, states)
            parts = PartitionedChains(
                emissions, sequences, lengths, weights, rules, init, asked
            )

            def start(found, weights):
                if own is not None:
                    return own
                problem = emissions.problem(found, weights, rules, n_jobs)
                starts = cls._starts(emissions, problem, asked, found)
                return fitted_chain(problem, starts, *ends)[0]

            point, result = parts.fit(start, *ends)
            model = cls._of_point(point, emissions)._with_result(result)
            return model._with_held(rules.held)
        found = emissions.read(sequences, lengths)
        weights = sequence_weights(weights, len(found))
        problem = emissions.problem(found, weights, rules, n_jobs)
        known = None if states is None else known_states(states, found)
        if own is None:
            starts = cls._starts(emissions, problem, asked, sequences, known)
        else:
            _check_counts(emissions, problem, len(own[0]))
            if known is not None:
                problem.tell(known_states(states, found, len(own[0])))
            starts = [problem.start_at(own)]
        point, result = fitted_chain(problem, starts, *ends)
        model = cls._of_point(point, emissions)._with_result(result)
        steps, total = float(weights @ found.lengths), float(weights.sum())
        model._with_seen(rows=steps, starts=total / steps)
        return model._with_names(found.columns)._with_held(rules.held)

    @classmethod
    def _rules(cls, smoothing: Any, fixed: Any, init: Any) -> Rules:
        """Rules of a fit: pseudo-counts, and what stays of a start."""
        return Rules(smoothing, fixed, None if init is None else init._holdable())

    def _holdable(self) -> dict[str, tuple[int, ...]]:
        """Shapes of masks of parameters that may stay in a fit."""
        own = (self.n_states,)
        return {"start": own, "transition": own * 2, "emission": own}

    @staticmethod
    def _starts(emissions, problem, asked, sequences, known=None):
        """Starts of a fit without `init`; `sequences` as they were given."""
        found = problem.seen.sequences
        size = emissions.size_of_one(problem)
        n_states, n_init, rng = asked.checked(found, size, one_of_many())
        if n_states > 1:
            warn_of_short(sequences, found.lengths)
        _check_counts(emissions, problem, n_states)
        starts = emissions.starts(problem, n_states, n_init, rng)
        if known is None:
            return starts
        if known.max() >= n_states:
            raise ValueError(
                f"states has the state {known.max()}; n_states={n_states} has those "
                f"from 0 to {n_states - 1}."
            )
        starts = list(starts)
        problem.tell(known)
        starts = [problem.in_order_of_known(point) for point in starts]
        return [problem.start_at(starts[0]), *starts[1:]]

    @classmethod
    def _of_point(cls, point: Point, emissions: Emissions) -> Self:
        """Model of a point of EM."""
        return cls(*point)

    @classmethod
    def _each(cls, data: Any, options: dict[str, Any]) -> list[Sequences]:
        lengths = options.pop("lengths", None)
        data = each_entry(data, lengths)
        family, own = family_of_columns(
            options.get("family", Gaussian),
            options.get("family_options"),
            *columns_of(data),
        )
        emissions = emissions_to_fit(family, own, options.get("n_components", 1))
        found = emissions.read(data, lengths)
        if issubclass(family, Categorical):  # all models have the same symbols
            size = alphabet_size(found, None, own.get("n_categories"))
            options["family_options"] = {**own, "n_categories": size}
        if options.get("n_states") != 1:
            warn_of_short(data, found.lengths)
        return found.singles()


def _check_partitioned(rules: Rules, states: Any) -> None:
    """Refuse what fits to sequences in blocks do not have."""
    held = [name for name in rules.held if name not in ("start", "transition")]
    if states is not None or held:
        name = f"fixed={held}" if held else "states"
        raise ValueError(
            f"{name} is not read where sequences come in blocks; pass .compute(), or "
            "keep start and transition only."
        )


def _check_counts(emissions: Emissions, problem: Any, n_states: int) -> None:
    """Refuse pseudo-counts of other shapes than the tables."""
    own, shape = (n_states,), emissions.counts_shape(problem, n_states)
    counts = problem.rules.counts
    check_counts(counts, start=own, transition=own * 2, emission=shape)
