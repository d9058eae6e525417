"""Display of a path of C: objective, support, gap and error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from maxent._support import validation as v
from maxent._support.results import ROUNDING
from maxent.displays._axes import GREY, colour, figure_of, line_style, make_axes
from maxent.displays._layout import fit_alike, legend_outside

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike, NDArray

    from maxent._support.results import DualResult
    from maxent.displays._axes import ManyAxes


class DualPathDisplay:
    """Solutions of ``dual_path`` over C.

    One panel each for the dual objective, the number of rows with a multiplier, the
    relative duality gap, and, if test data are given, the share of errors.

    Parameters
    ----------
    C : ndarray (k,)
        Increasing values of C.
    objective : ndarray (k,)
        Dual objective.
    support : ndarray of int (k,)
        Rows with a nonzero multiplier.
    gap : ndarray (k,)
        Relative duality gap, ``gap / (1 + objective)``.
    converged : ndarray of bool (k,)
        Whether the solution met its tolerance.
    n_rows : int
        Rows in all.
    error : ndarray (k,), optional
        Share of wrong test rows.

    Attributes
    ----------
    ax_ : ndarray of Axes (3,) or (4,)
    figure_ : Figure
    lines_ : ndarray of Line2D (3,) or (4,)

    See Also
    --------
    maxent.discrimination.dual_path : Computes the solutions.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.discrimination import ExponentialMargin, dual_path
    >>> from maxent.displays import DualPathDisplay
    >>> x = np.linspace(-2, 2, 40)
    >>> y = np.where(np.arange(40) % 9 == 0, -1, 1) * np.sign(x)
    >>> C = np.geomspace(0.1, 10, 5)
    >>> results = dual_path(np.outer(x, x), y, ExponentialMargin(10.0), C)
    >>> DualPathDisplay.from_results(C, results).support.shape
    (5,)
    """

    ax_: NDArray[Any]
    figure_: Figure
    lines_: NDArray[Any]

    def __init__(
        self,
        C: NDArray[np.float64],
        objective: NDArray[np.float64],
        support: NDArray[np.intp],
        gap: NDArray[np.float64],
        *,
        converged: NDArray[np.bool_],
        n_rows: int,
        error: NDArray[np.float64] | None = None,
    ) -> None:
        self.C = C
        self.objective = objective
        self.support = support
        self.gap = gap
        self.converged = converged
        self.n_rows = n_rows
        self.error = error

    @classmethod
    def from_results(
        cls,
        C: ArrayLike,
        results: Sequence[DualResult],
        *,
        y: ArrayLike | None = None,
        K_test: ArrayLike | None = None,
        y_test: ArrayLike | None = None,
        ax: ManyAxes | None = None,
        **kwargs: Any,
    ) -> DualPathDisplay:
        """Draw what ``dual_path`` returned.

        Parameters
        ----------
        C : array-like (k,)
            As given to ``dual_path``, in any order.
        results : list of DualResult (k,)
            One solution per value.
        y : array-like (n,), optional
            Training labels -1 and +1.
        K_test : array-like (n_test, n), optional
            Kernel between test and training rows.
        y_test : array-like (n_test,), optional
            Test labels -1 and +1. The last three go together.
        ax : array-like of Axes, optional
            Three, or four with an error; None makes a figure.
        **kwargs
            Passed to :meth:`plot`.

        Returns
        -------
        display : DualPathDisplay

        Raises
        ------
        ValueError
            For results that ``dual_path`` does not return or that are not as many as
            `C`, and test data that are incomplete or of another shape.
        """
        values, results = _in_order(C, results)
        n = len(results[0].lam)
        given = [part is not None for part in (y, K_test, y_test)]
        if any(given) and not all(given):
            raise ValueError("give y, K_test and y_test together, or none of them.")
        error = _errors(results, n, y, K_test, y_test) if all(given) else None
        return cls(
            values,
            np.array([r.objective for r in results]),
            np.array([np.count_nonzero(r.lam) for r in results]),
            np.array([r.relative_gap for r in results]),
            converged=np.array([r.converged for r in results]),
            n_rows=n,
            error=error,
        ).plot(ax, **kwargs)

    def plot(
        self, ax: ManyAxes | None = None, *, tol: float | None = None, **kwargs: Any
    ) -> DualPathDisplay:
        """Draw the panels.

        Parameters
        ----------
        ax : array-like of Axes, optional
            Three, or four with an error; None makes a figure.
        tol : float, optional
            Tolerance that was asked for, drawn into the panel of the gap.
        **kwargs
            Properties of the curves, as ``linewidth``; see ``Axes.plot``.

        Returns
        -------
        self
        """
        panels = [
            ("objective $J$", self.objective),
            (f"support (of {self.n_rows} rows)", self.support),
            ("duality gap / $(1+J)$", np.maximum(self.gap, ROUNDING)),
        ]
        if self.error is not None:
            panels.append(("test error (%)", 100 * self.error))
        k = len(panels)
        shape = (1, k) if ax is not None else (2, 2) if k == 4 else (1, 3)
        axes = make_axes(ax, shape, (3.7 * shape[1], 0.2 + 2.5 * shape[0]))
        self.ax_ = axes.ravel()
        self.figure_ = figure_of(self.ax_[0])
        self.lines_ = np.empty(k, dtype=object)
        late = ~self.converged
        for j, (axis, (label, values)) in enumerate(zip(self.ax_, panels, strict=True)):
            axis.grid(alpha=0.25)
            axis.set(xscale="log", xlabel="$C$", ylabel=label)
            style = line_style(kwargs, marker="o", color=colour(0), ms=4, lw=1.5)
            (self.lines_[j],) = axis.plot(self.C, values, **style)
            if late.any():
                cross = {"marker": "x", "color": colour(5), "ms": 8, "mew": 2, "ls": ""}
                text = "not converged"
                axis.plot(self.C[late], values[late], label=text, **cross)
        self.ax_[0].set_yscale("log")
        for axis in self.ax_[[1, *range(3, k)]]:
            axis.set_ylim(bottom=0)
        self._finish_gap(self.ax_[2], tol)
        fit_alike(list(self.ax_))
        return self

    def _finish_gap(self, axis: Axes, tol: float | None) -> None:
        axis.set_yscale("log")
        top = max([1e-13, tol or 0.0, *self.gap[np.isfinite(self.gap)]])
        if (self.gap < ROUNDING).any():
            axis.axhspan(
                0.1 * ROUNDING,
                ROUNDING,
                color=GREY,
                alpha=0.25,
                lw=0,
                label="below the rounding of $J$",
            )
            axis.set_ylim(0.1 * ROUNDING, 20 * top)
        if tol is not None:
            axis.axhline(tol, color=GREY, ls="--", lw=1.2, label="tolerance")
        if axis.get_legend_handles_labels()[0]:
            legend = axis.legend(fontsize="small", frameon=False)
            if legend.get_window_extent().width > axis.bbox.width:
                legend_outside(axis, axis.get_legend_handles_labels()[0])


def _in_order(C: Any, results: Any) -> tuple[NDArray[np.float64], list[DualResult]]:
    """The values of C in increasing order, each with its result."""
    if not isinstance(results, (list, tuple)):
        results = [results]
    for result in results:
        if not (hasattr(result, "lam") and hasattr(result, "relative_gap")):
            raise ValueError(
                f"results={v.shown(result)} must be the list that "
                "maxent.discrimination.dual_path returns."
            )
    values = v.as_doubles("C", C)
    if values.ndim != 1 or len(values) != len(results) or not len(values):
        raise ValueError(
            f"C has shape {values.shape} but there are {len(results)} results; one "
            "result belongs to each value."
        )
    order = np.argsort(values, kind="stable")
    return values[order], [results[k] for k in order]


def _errors(
    results: Sequence[DualResult], n: int, y: Any, K_test: Any, y_test: Any
) -> NDArray[np.float64]:
    """Share of test rows on the wrong side, for every result."""
    y, y_test = v.as_array("y", y), v.as_array("y_test", y_test)
    K_test = v.as_doubles("K_test", K_test)
    if y.shape != (n,) or y_test.ndim != 1 or K_test.shape != (len(y_test), n):
        raise ValueError(
            f"y has shape {y.shape}, K_test {K_test.shape} and y_test {y_test.shape}; "
            f"expected ({n},), (n_test, {n}) and (n_test,)."
        )
    for name, labels in (("y", y), ("y_test", y_test)):
        if not np.isin(labels, (-1, 1)).all():
            raise ValueError(f"{name} must contain -1 and +1 only.")
    a = np.column_stack([y * r.lam for r in results])
    f = K_test @ a + np.array([r.bias for r in results])
    return np.asarray(np.mean(np.where(f > 0, 1, -1) != y_test[:, None], axis=0))
