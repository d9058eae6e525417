"""Errors of min-entropy models over the order alpha and C."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxent._support import validation as v
from maxent._support.processes import spread
from maxent.displays._axes import colour, dashes, line_style, make_axes, marker
from maxent.displays._estimators import refusal
from maxent.displays._layout import fit, legend_outside

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from maxent._support.typing import FloatArray

_ORDERS = (0.0, 0.25, 1.0, 4.0, np.inf)


class AlphaPathDisplay:
    """Validation error over orders alpha and C, with the point to choose.

    Parameters
    ----------
    alphas : array-like (n_alphas,)
        Orders in [0, inf], increasing.
    C : array-like (n_C,)
        Values of C, increasing.
    errors : array-like (n_C, n_alphas) or (n_splits, n_C, n_alphas)
        Share of wrong validation samples.

    Attributes
    ----------
    mean, standard_error : ndarray (n_C, n_alphas)
        Mean over the splits, and its standard error (NaN with one split).
    best_alpha, best_C : float
        Where the mean is smallest; of equal ones the smallest C, then the smallest
        alpha.
    ax_ : Axes
    figure_ : Figure
    lines_ : list of ErrorbarContainer
        One for each order or, against alpha, for each C.
    best_ : Line2D
        Mark of the best point.
    legend_ : Legend

    Raises
    ------
    ValueError
        For values that do not increase, and errors of another shape or not in [0, 1].

    See Also
    --------
    maxent.minentropy.alpha_path : The models of one C.

    References
    ----------
    Miller, Kumar, Packer, Goodman & Koller (2012), Max-margin min-entropy models,
    figure 1.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.displays import AlphaPathDisplay
    >>> from maxent.minentropy import M3EClassifier
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.standard_normal((60, 5, 2)), np.arange(60) % 2
    >>> X[y == 1, 3] += 3.0
    >>> display = AlphaPathDisplay.from_estimator(
    ...     M3EClassifier(init="path"), X, y, alphas=[0.0, 1.0, 8.0], C=[1.0, 30.0],
    ...     cv=3)
    >>> display.mean.shape, display.best_C
    ((2, 3), 30.0)
    """

    def __init__(self, alphas: ArrayLike, C: ArrayLike, errors: ArrayLike) -> None:
        self.alphas = _increasing("alphas", alphas)
        self.C = _increasing("C", C)
        self.errors = v.as_doubles("errors", errors)
        shape = (len(self.C), len(self.alphas))
        if self.errors.ndim == 2:
            self.errors = self.errors[None]
        if self.errors.shape[1:] != shape or not self.errors.size:
            raise ValueError(
                f"errors has shape {self.errors.shape}; {shape}, or (n_splits, "
                f"{shape[0]}, {shape[1]}), is needed: a row for each C, a column for "
                "each order."
            )
        if not ((self.errors >= 0) & (self.errors <= 1)).all():
            raise ValueError("errors has entries outside [0, 1]; give shares.")
        self.mean: FloatArray = self.errors.mean(axis=0)
        n = len(self.errors)
        self.standard_error = np.full(shape, np.nan)
        if n > 1:
            self.standard_error = self.errors.std(axis=0, ddof=1) / np.sqrt(n)
        i, j = np.unravel_index(self.mean.argmin(), shape)
        self.best_C, self.best_alpha = float(self.C[i]), float(self.alphas[j])

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        alphas: ArrayLike = _ORDERS,
        C: ArrayLike = (1.0, 10.0, 100.0, 1000.0),
        cv: Any = 5,
        n_jobs: int | None = None,
        against: Literal["C", "alpha"] = "C",
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Validate an estimator at all orders and C, and draw.

        Parameters
        ----------
        estimator : M3EClassifier, M3EMotifClassifier, M3EGridClassifier or M3EModel
            With all parameters but `alpha` and `C`.
        X : as `fit` of the estimator takes it
            Samples; with a feature map of your own a list or an array (n, ...).
        y : array-like (n,)
            Labels.
        alphas : array-like (n_alphas,), default=(0, 0.25, 1, 4, inf)
            Orders of each path, increasing.
        C : array-like (n_C,), default=(1, 10, 100, 1000)
            Values of C, increasing.
        cv : int, splitter or iterable of (train, test), default=5
            Splits, as scikit-learn's ``check_cv`` takes them.
        n_jobs : int, optional
            Processes, over splits and C.
        against : {"C", "alpha"}, default="C"
            What the horizontal axis shows.
        ax : Axes, optional
            Where to draw; None makes a figure.
        **kwargs
            As for :meth:`plot`.

        Returns
        -------
        display : AlphaPathDisplay
        """
        from sklearn.model_selection import check_cv

        from maxent.minentropy._base import MinEntropyBase

        if not isinstance(estimator, MinEntropyBase):
            raise refusal(
                estimator,
                "an M3EClassifier, M3EMotifClassifier, M3EGridClassifier or M3EModel.",
            )
        orders, values = _increasing("alphas", alphas), _increasing("C", C)
        labels = v.as_array("y", y)
        splitter = check_cv(cv, labels, classifier=True)
        splits = list(splitter.split(np.zeros(len(labels)), labels))
        tasks = [
            (estimator, c, orders, X, labels, *split)
            for split in splits
            for c in values
        ]
        found = list(spread(_path_errors, tasks, n_jobs))
        errors = np.reshape(found, (len(splits), len(values), len(orders)))
        return cls(orders, values, errors).plot(ax, against=against, **kwargs)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        against: Literal["C", "alpha"] = "C",
        **kwargs: Any,
    ) -> Self:
        """Draw the lines.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; None makes a figure.
        against : {"C", "alpha"}, default="C"
            "C" draws a line for each order over C, "alpha" one for each C over the
            orders, evenly spaced.
        **kwargs
            Properties of the lines, as for ``Axes.errorbar``.

        Returns
        -------
        self
        """
        v.check_choice("against", against, ("C", "alpha"))
        self.ax_ = make_axes(ax, (1, 1), (5.8, 3.6))[0, 0]
        self.figure_ = self.ax_.figure
        over_C = against == "C"
        x: NDArray[Any] = self.C if over_C else np.arange(len(self.alphas))
        mean, error = self.mean, self.standard_error
        if over_C:
            mean, error = mean.T, error.T
        names = [f"{value:g}" for value in (self.alphas if over_C else self.C)]
        self.lines_ = []
        for k, name in enumerate(names):
            bars = None if np.isnan(error[k]).any() else 100.0 * error[k]
            style = {"color": colour(k), "ls": dashes(k), "marker": marker(k)}
            options = {"capsize": 2, **line_style(kwargs, ms=4, lw=1.5, **style)}
            self.lines_.append(
                self.ax_.errorbar(x, 100.0 * mean[k], yerr=bars, label=name, **options)
            )
        self._mark_best(over_C)
        if over_C:
            self.ax_.set(xscale="log", xlabel="C")
        else:
            self.ax_.set_xticks(x, [f"{a:g}" for a in self.alphas])
            self.ax_.set(xlabel="order alpha")
        self.ax_.set(ylabel="validation error, %")
        handles = [*self.lines_, self.best_]
        title = "alpha" if over_C else "C"
        self.legend_ = legend_outside(self.ax_, handles, title=title)
        fit(self.ax_)
        return self

    def _mark_best(self, over_C):
        at = self.best_C
        if not over_C:
            at = float(np.flatnonzero(self.alphas == self.best_alpha)[0])
        (self.best_,) = self.ax_.plot(
            *([at], [100.0 * self.mean.min()]),
            **{"ls": "", "marker": "o", "ms": 12, "mfc": "none", "mew": 1.5},
            color="0.1",
            label="smallest",
        )


def _increasing(name, values):
    values = np.atleast_1d(v.as_doubles(name, values))
    low = 0.0 if name == "alphas" else np.nextafter(0.0, 1.0)
    ordered = values.ndim == 1 and len(values) and (values[1:] > values[:-1]).all()
    if not ordered or not (values >= low).all():
        kind = "orders from 0 to inf" if name == "alphas" else "numbers > 0"
        raise ValueError(f"{name}={v.shown(values.tolist())} must be {kind}, rising.")
    return values


def _path_errors(estimator, C, alphas, X, y, train, test):
    """Share of wrong test samples of every order at one C and one split."""
    from sklearn.base import clone

    from maxent.minentropy import alpha_path

    model = clone(estimator).set_params(C=float(C))
    with warnings.catch_warnings():  # a small C is one of those that are compared
        warnings.filterwarnings("ignore", ".* predicts .* for all", UserWarning)
        path = alpha_path(model, model._samples(X, train), y[train], alphas)
    held = model._samples(X, test)
    return [float(np.mean(found.predict(held) != y[test])) for found in path]
