"""A kernel matrix by classes, and its spectrum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxent._support import validation as v
from maxent.displays._axes import GREY, INK, colour, make_axes
from maxent.displays._layout import fit_alike

if TYPE_CHECKING:
    from maxent.displays._axes import ManyAxes

_ROUNDING = 1e-12  # eigenvalues within this share of the largest may be zero


class GramDisplay:
    """Kernel matrix, samples sorted by class, beside the spectrum of its eigenvalues.

    Eigenvalues below zero are drawn apart: a kernel machine may then have no optimum.

    Parameters
    ----------
    gram : array-like (n, n)
        Symmetric.
    y : array-like (n,), optional
        Classes; None keeps the order of the samples.

    Attributes
    ----------
    ax_ : ndarray of Axes (2,)
        Of the matrix and of the spectrum.
    figure_ : Figure
    image_ : AxesImage
    spectrum_ : Line2D
        Eigenvalues above rounding.
    negative_ : Line2D or None
        Eigenvalues below zero, by their absolute values.
    colorbar_ : Colorbar
    order : ndarray of int (n,)
        Rows of the matrix as they are drawn, class by class.
    classes : ndarray or None
        The classes, if there are labels; `sizes` are their numbers of rows.
    eigenvalues : ndarray (n,)
        Of the matrix, the largest first.

    Raises
    ------
    ValueError
        For a matrix that is not square, symmetric and finite, and for other numbers of
        labels.

    See Also
    --------
    maxent.kernels.ProductKernel : Kernel matrices from data.
    HorizonDisplay : Kernels over the length of sequences.

    Examples
    --------
    >>> from maxent.displays import GramDisplay
    >>> from maxent.families import Poisson
    >>> display = GramDisplay.from_models(Poisson([1.0, 9.0, 2.0]), y=["a", "b", "a"])
    >>> display.order.tolist()
    [0, 2, 1]
    >>> bool(display.eigenvalues.min() > 0)
    True
    """

    def __init__(self, gram: ArrayLike, *, y: ArrayLike | None = None) -> None:
        self.gram = v.check_gram(v.as_doubles("gram", gram))
        n = len(self.gram)
        labels = None if y is None else v.as_array("y", y)
        if labels is not None and labels.shape != (n,):
            raise ValueError(
                f"y has shape {labels.shape} but gram has {n} rows; one label for each "
                "is expected."
            )
        self.classes: NDArray[Any] | None
        self.classes, codes = (
            (None, np.zeros(n, dtype=int))
            if labels is None
            else np.unique(labels, return_inverse=True)
        )
        self.order = np.argsort(codes, kind="stable")
        self.sizes = np.bincount(codes)
        self.eigenvalues = np.linalg.eigvalsh(self.gram)[::-1]

    @classmethod
    def from_models(
        cls,
        models: Any,
        *,
        y: ArrayLike | None = None,
        ax: ManyAxes | None = None,
        **options: Any,
    ) -> Self:
        """Draw the normalised product kernel of models.

        Parameters
        ----------
        models : batch of a family, or list of models
        y : array-like (n,), optional
            Classes.
        ax : sequence of two Axes, optional
            For the matrix and for the spectrum; None makes a figure.
        **options
            Of :func:`~maxent.kernels.product_kernel`, such as `rho` and `horizon`.

        Returns
        -------
        display : GramDisplay
        """
        from maxent.kernels import product_kernel

        gram = product_kernel(models, **{"normalize": True, **options})
        return cls(gram, y=y).plot(ax)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike | None = None,
        *,
        ax: ManyAxes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the kernel matrix that a transformer makes of training data.

        Parameters
        ----------
        estimator : ProductKernel
            Or another transformer whose ``fit_transform`` returns kernel matrices; a
            copy of it is fitted.
        X : list, array or CSR
            Data.
        y : array-like (n,), optional
            Classes.
        ax : sequence of two Axes, optional
            For the matrix and for the spectrum; None makes a figure.
        **kwargs
            Passed on to ``imshow``.

        Returns
        -------
        display : GramDisplay
        """
        from sklearn.base import clone

        if not hasattr(estimator, "fit_transform"):
            raise TypeError(
                f"estimator={v.shown(estimator)} has no method fit_transform; a "
                "transformer such as ProductKernel is needed."
            )
        return cls(clone(estimator).fit_transform(X), y=y).plot(ax, **kwargs)

    def plot(self, ax: ManyAxes | None = None, **kwargs: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : sequence of two Axes, optional
            For the matrix and for the spectrum; None makes a figure.
        **kwargs
            Passed on to ``imshow``.

        Returns
        -------
        self
        """
        self.ax_ = make_axes(ax, (1, 2), (8.4, 3.6), width_ratios=[1.15, 1])[0]
        left, right = self.ax_
        self.figure_ = left.figure
        style = {"cmap": "cividis", "interpolation": "nearest", **kwargs}
        self.image_ = left.imshow(self.gram[np.ix_(self.order, self.order)], **style)
        # as high as the matrix, also where the Axes are made square
        scale = left.inset_axes((1.04, 0.0, 0.05, 1.0))
        self.colorbar_ = self.figure_.colorbar(self.image_, cax=scale)
        self.colorbar_.ax.set_title("kernel", fontsize="small")
        self._mark_classes(left)
        self._draw_spectrum(right)
        right.set_box_aspect(1)  # as the matrix
        fit_alike([left, right])
        return self

    def _mark_classes(self, ax):
        """Lines between the classes, and their names in the middle of each."""
        if self.classes is None:
            ax.set(xlabel="sample", ylabel="sample")
            for axis in (ax.xaxis, ax.yaxis):
                axis.get_major_locator().set_params(integer=True)
            return
        ends = np.cumsum(self.sizes)
        for end in ends[:-1]:
            ax.axhline(end - 0.5, color="w", lw=1.2)
            ax.axvline(end - 0.5, color="w", lw=1.2)
        middle = ends - 0.5 * self.sizes - 0.5
        names = [str(c) for c in self.classes]
        ax.set_xticks(middle, names)
        ax.set_yticks(middle, names)
        ax.tick_params(length=0)
        ax.set(xlabel="class", ylabel="class")

    def _draw_spectrum(self, ax):
        w = self.eigenvalues
        rank = np.arange(1, len(w) + 1)
        floor = _ROUNDING * np.abs(w).max(initial=0.0)
        kept, below = w > floor, w < -floor
        (self.spectrum_,) = ax.plot(
            rank[kept], w[kept], color=colour(0), marker="o", ms=3, lw=1
        )
        self.negative_ = None
        if below.any():
            (self.negative_,) = ax.plot(
                rank[below],
                -w[below],
                color=colour(5),
                marker="x",
                ls="",
                label=f"below zero ({below.sum()}), without sign",
            )
            ax.legend(fontsize="small", frameon=False)
        if kept.any() or below.any():
            ax.set_yscale("log")
        zero = len(w) - int(kept.sum()) - int(below.sum())
        if zero:
            ax.text(
                0.97,
                0.97,
                f"{zero} of {len(w)} zero to rounding",
                transform=ax.transAxes,
                ha="right",
                va="top",
                color=GREY,
                fontsize="small",
            )
        ax.set(xlabel="rank", ylabel="eigenvalue")
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.grid(alpha=0.3, color=INK, lw=0.4)
