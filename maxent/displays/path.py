"""What happens along a path of C: objective, support, gap and error."""

from __future__ import annotations

import numpy as np

from maxent._support.results import ROUNDING
from maxent.displays._axes import GREY, colour, make_axes


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

    def __init__(self, C, objective, support, gap, *, converged, n_rows, error=None):
        self.C = C
        self.objective = objective
        self.support = support
        self.gap = gap
        self.converged = converged
        self.n_rows = n_rows
        self.error = error

    @classmethod
    def from_results(cls, C, results, *, y=None, K_test=None, y_test=None):
        """Take apart what ``dual_path`` returned.

        Parameters
        ----------
        C : array-like (k,)
            As given to ``dual_path``, in any order.
        results : list of DualResult (k,)
        y : array-like (n,), optional
            Training labels -1 and +1.
        K_test : array-like (n_test, n), optional
            Kernel between test and training rows.
        y_test : array-like (n_test,), optional
            Test labels -1 and +1. The last three go together.

        Returns
        -------
        display : DualPathDisplay
        """
        C = np.asarray(C, dtype=np.float64)
        if C.ndim != 1 or len(C) != len(results) or not len(C):
            raise ValueError(
                f"C has shape {C.shape} but there are {len(results)} results; one "
                "result belongs to each value."
            )
        order = np.argsort(C, kind="stable")
        results = [results[k] for k in order]
        n = len(results[0].lam)
        given = [part is not None for part in (y, K_test, y_test)]
        if any(given) and not all(given):
            raise ValueError("give y, K_test and y_test together, or none of them.")
        error = _errors(results, n, y, K_test, y_test) if all(given) else None
        return cls(
            C[order],
            np.array([r.objective for r in results]),
            np.array([np.count_nonzero(r.lam) for r in results]),
            np.array([r.relative_gap for r in results]),
            converged=np.array([r.converged for r in results]),
            n_rows=n,
            error=error,
        )

    def plot(self, ax=None, *, tol=None):
        """Draw the panels.

        Parameters
        ----------
        ax : array-like of Axes, optional
            Three, or four with an error; None makes a figure.
        tol : float, optional
            Tolerance that was asked for, drawn into the panel of the gap.

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
        self.figure_ = self.ax_[0].figure
        self.lines_ = np.empty(k, dtype=object)
        late = ~self.converged
        for j, (axis, (label, values)) in enumerate(zip(self.ax_, panels, strict=True)):
            axis.grid(alpha=0.25)
            axis.set(xscale="log", xlabel="$C$", ylabel=label)
            (self.lines_[j],) = axis.plot(
                self.C, values, "o-", color=colour(0), ms=4, lw=1.5
            )
            if late.any():
                style = {"color": colour(5), "ms": 8, "mew": 2, "ls": ""}
                text = "not converged"
                axis.plot(self.C[late], values[late], marker="x", label=text, **style)
        self.ax_[0].set_yscale("log")
        for axis in self.ax_[[1, *range(3, k)]]:
            axis.set_ylim(bottom=0)
        self._finish_gap(self.ax_[2], tol)
        return self

    def _finish_gap(self, axis, tol):
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
            axis.legend(fontsize="small", frameon=False)


def _errors(results, n, y, K_test, y_test):
    """Share of test rows on the wrong side, for every result."""
    y, y_test = np.asarray(y), np.asarray(y_test)
    K_test = np.asarray(K_test, dtype=np.float64)
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
    return np.mean(np.where(f > 0, 1, -1) != y_test[:, None], axis=0)
