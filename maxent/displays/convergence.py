"""Objectives over the steps of iterative fits: of M steps, and of estimators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from maxent._support import validation as v
from maxent.displays._axes import colour, dashes, line_style, make_axes
from maxent.displays._estimators import (
    check_fitted_one,
    check_named,
    last_step,
    refusal,
)

if TYPE_CHECKING:
    from maxent.latent import LogLinearModel
    from maxent.latent._em_is import MStep


class ConvergenceDisplay:
    """Objective against steps, one line for each algorithm or estimator.

    Of latent models, log-likelihoods against E steps, a line for each M step: an E step
    (the means given the data, and the model's) is what the algorithms share; an
    evaluation of L-BFGS on the likelihood takes one as well. Lines show how much each
    makes of it. Of fitted estimators, what ``objective_history_`` has.

    Parameters
    ----------
    histories : dict {str: array-like (n_steps + 1,)}
        Name -> average log-likelihood (less the penalty), or another objective, at the
        start and after every step.
    xlabel, ylabel : str
        What steps and values are.

    Attributes
    ----------
    ax_ : Axes
        Where it was drawn.
    figure_ : Figure
        Its figure.
    lines_ : dict {str: Line2D}
        By name.
    legend_ : Legend

    Raises
    ------
    ValueError
        If no history is given, and for histories that are not vectors of numbers.

    See Also
    --------
    maxent.latent.em_is : The algorithm.
    CandidatesDisplay : The ends of many starts.

    References
    ----------
    Wang, Schuurmans & Zhao (2012), The latent maximum entropy principle, figure 10.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.displays import ConvergenceDisplay
    >>> from maxent.latent import FiniteLatentModel
    >>> f = np.zeros((3, 2, 3))
    >>> f[:, 0, 0] = 1.0
    >>> f[:, 0, 1] = f[:, 1, 2] = np.arange(3.0)
    >>> y = [0] * 50 + [1] * 10 + [2] * 40
    >>> display = ConvergenceDisplay.from_model(
    ...     FiniteLatentModel(f), y, [0.0, 1.0, -1.0], n_steps=20)
    >>> list(display.histories)
    ['IIS, K = 1', 'IIS, K = 4', 'L-BFGS on L']
    """

    def __init__(
        self,
        histories: Mapping[str, ArrayLike],
        *,
        xlabel: str = "E steps, that of the start included",
        ylabel: str = "L, nats",
    ) -> None:
        if not isinstance(histories, Mapping) or not histories:
            raise ValueError(
                f"histories={v.shown(histories)} must be a dict from names to "
                "log-likelihoods, such as {'EM': [-3.0, -2.5]}."
            )
        self.histories = {
            str(name): v.as_doubles(f"histories[{name!r}]", values)
            for name, values in histories.items()
        }
        for name, values in self.histories.items():
            if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
                raise ValueError(
                    f"histories[{name!r}] has shape {values.shape}; a vector of finite "
                    "log-likelihoods, the start's first, is expected."
                )
        self.xlabel, self.ylabel = xlabel, ylabel

    @classmethod
    def from_model(
        cls,
        model: LogLinearModel,
        data: ArrayLike,
        lam0: ArrayLike,
        *,
        methods: Sequence[MStep] = ("iis",),
        inner: Sequence[int] = (1, 4),
        n_steps: int = 100,
        sigma2: ArrayLike = np.inf,
        bound: float = np.inf,
        sample_weight: ArrayLike | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Run every M step from one start, and draw.

        Parameters
        ----------
        model : LogLinearModel
            Such as :class:`~maxent.latent.FiniteLatentModel`.
        data : array-like
            Observed values, as the model takes them.
        lam0 : array-like (N,)
            Weights to start from.
        methods : sequence of {"iis", "gis", "scgis", "newton", "cg", "lbfgs"}
            M steps; by default improved iterative scaling.
        inner : sequence of int, default=(1, 4)
            K, steps of each M step: a line for every method and K.
        n_steps : int, default=100
            E steps, and evaluations of L-BFGS on the likelihood.
        sigma2, bound, sample_weight
            As for :func:`~maxent.latent.em_is`.
        ax : Axes, optional
            Where to draw; None makes a figure.
        **kwargs
            As for :meth:`plot`.

        Returns
        -------
        display : ConvergenceDisplay
        """
        from maxent.latent._em_is import checked_likelihood, run
        from maxent.latent._likelihood import M_STEPS

        likelihood = checked_likelihood(
            model, data, "l2", sigma2, None, bound, sample_weight
        )
        lam = v.as_doubles("lam0", lam0)
        if lam.shape != (model.n_features,) or not np.isfinite(lam).all():
            raise ValueError(
                f"lam0 has shape {lam.shape}; expected ({model.n_features},), finite."
            )
        n_steps = v.check_count("n_steps", n_steps)
        lam = likelihood.units.weights_in(lam[None])[0]
        start = np.clip(lam, -likelihood.bound, likelihood.bound)
        histories = {}
        for name in methods:
            method = v.check_choice("methods", name, M_STEPS)
            for k in inner:
                K = v.check_count("inner", k)
                # a gradient of zero only ends a run: the lines are to be equally long
                result = run(likelihood, start[None], K, method, 0.0, n_steps)
                label = f"{method.upper()}, K = {K}"
                histories[label] = [float(each[1][0]) for each in result.history]
        histories["L-BFGS on L"] = _ascent(likelihood, start, n_steps)
        return cls(histories).plot(ax, **kwargs)

    @classmethod
    def from_estimators(
        cls, estimators: Mapping[str, Any], *, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Draw the objectives of fitted estimators.

        Parameters
        ----------
        estimators : dict {str: estimator}
            Name -> fitted estimator with ``objective_history_``, such as M3EClassifier.
        ax : Axes, optional
            Where to draw; None makes a figure.
        **kwargs
            As for :meth:`plot`.

        Returns
        -------
        display : ConvergenceDisplay

        Raises
        ------
        ValueError
            For estimators that are not fitted, or keep no history.
        """
        histories = {}
        for name, estimator in check_named("estimators", estimators, "models").items():
            where = f"estimators[{name!r}]"
            check_fitted_one(estimator, where)
            values = getattr(last_step(estimator), "objective_history_", None)
            if values is None:
                wanted = "an estimator with objective_history_, such as M3EClassifier."
                raise refusal(estimator, wanted, where)
            histories[str(name)] = values
        labels = {"xlabel": "entries of objective_history_", "ylabel": "objective"}
        return cls(histories, **labels).plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the lines.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; None makes a figure.
        **kwargs
            Properties of the lines, as for ``Axes.plot``.

        Returns
        -------
        self
        """
        self.ax_ = make_axes(ax, (1, 1), (5.4, 3.6))[0, 0]
        self.figure_ = self.ax_.figure
        self.lines_ = {}
        for k, (name, values) in enumerate(self.histories.items()):
            style = line_style(
                kwargs, color=colour(k), ls=dashes(k), lw=1.8, label=name
            )
            (self.lines_[name],) = self.ax_.plot(
                np.arange(len(values)) + 1, values, **style
            )
        self.ax_.set(xscale="log", xlabel=self.xlabel, ylabel=self.ylabel)
        self.legend_ = self.ax_.legend(fontsize="small", frameon=False)
        return self


def _ascent(likelihood, start, n_steps):
    """Best objective so far at each evaluation of L-BFGS, the start's first."""
    from scipy.optimize import minimize

    best: list[float] = []

    def both(x):
        _, _, _, value, gradient, _ = likelihood.evaluate(x[None])
        best.append(max(float(value[0]), best[-1] if best else -np.inf))
        return -value[0], -gradient[0]

    bound = np.broadcast_to(likelihood.bound, start.shape)
    minimize(
        both,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(-bound, bound)),
        options={"maxiter": n_steps, "maxfun": n_steps, "ftol": 0.0, "gtol": 0.0},
    )
    return best[: n_steps + 1]
