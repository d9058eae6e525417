"""Kernels between models of sequences over the length that they compare."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from maxent._support import validation as v
from maxent.displays._axes import colour, dashes, line_style, make_axes
from maxent.displays._layout import fit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SHARES = (0.1, 0.9)  # of the pairs between the edges of a band


class HorizonDisplay:
    """Normalised kernels within and between classes, over the horizon.

    The line is the mean over pairs of different models, the band holds eight pairs of
    ten. A horizon is of use where the bands are apart: short sequences do not tell
    models apart, and at long ones every model is like itself only.

    Parameters
    ----------
    horizons : array-like of int (n_horizons,)
        T, for sequences of T + 1 observations; increasing.
    kernels : array-like (n, n, n_horizons)
        Normalised kernels.
    y : array-like (n,), optional
        Classes; None takes all pairs together.

    Attributes
    ----------
    ax_ : Axes
    figure_ : Figure
    lines_ : dict {str: Line2D}
        "within" and "between", or "all".
    bands_ : dict
        The bands, likewise.
    legend_ : Legend or None
    pairs : dict {str: ndarray (n_pairs, n_horizons)}
        Kernel values of the pairs of each group.
    means : dict {str: ndarray (n_horizons,)}
        Their means.

    Raises
    ------
    ValueError
        For other shapes and for classes without any pair.

    See Also
    --------
    maxent.kernels.product_kernel : All horizons from one call.
    GramDisplay : The kernel matrix at one horizon.

    Examples
    --------
    >>> from maxent.displays import HorizonDisplay
    >>> from maxent.models import MarkovChain
    >>> P = [MarkovChain([0.5, 0.5], [[a, 1 - a], [1 - a, a]])
    ...      for a in (0.1, 0.2, 0.8, 0.9)]
    >>> display = HorizonDisplay.from_models(P, range(10), y=[0, 0, 1, 1])
    >>> {name: round(float(mean[9]), 2) for name, mean in display.means.items()}
    {'within': 0.91, 'between': 0.06}
    """

    def __init__(
        self, horizons: ArrayLike, kernels: ArrayLike, *, y: ArrayLike | None = None
    ) -> None:
        self.horizons = v.as_doubles("horizons", horizons)
        K = v.as_doubles("kernels", kernels)
        if self.horizons.ndim != 1 or not (np.diff(self.horizons) > 0).all():
            raise ValueError(
                f"horizons={v.shown(horizons)} must be numbers that increase."
            )
        n = len(K) if K.ndim else 0
        if K.shape != (n, n, len(self.horizons)) or n < 2:
            raise ValueError(
                f"kernels has shape {K.shape}; (n, n, {len(self.horizons)}) with two "
                "or more models is expected."
            )
        self.kernels = K
        i, j = np.triu_indices(n, 1)
        groups = {"all": np.ones(len(i), dtype=bool)}
        if y is not None:
            labels = v.as_array("y", y)
            if labels.shape != (n,):
                raise ValueError(
                    f"y has shape {labels.shape} but kernels are of {n} models; one "
                    "label for each is expected."
                )
            same = labels[i] == labels[j]
            groups = {"within": same, "between": ~same}
        for name, at in groups.items():
            if not at.any():
                raise ValueError(
                    f"y={v.shown(y)} has no pair of models {name} classes; leave it "
                    "None to take all pairs together."
                )
        self.pairs = {name: K[i[at], j[at]] for name, at in groups.items()}
        self.means = {name: values.mean(axis=0) for name, values in self.pairs.items()}

    @classmethod
    def from_models(
        cls,
        models: Any,
        horizons: ArrayLike,
        *,
        y: ArrayLike | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Draw the normalised product kernel of models of sequences.

        Parameters
        ----------
        models : list of models
        horizons : array-like of int
            T, increasing.
        y : array-like (n,), optional
            Classes.
        ax : Axes, optional
            Where to draw; None makes a figure.
        **options
            Of :func:`~maxent.kernels.product_kernel`, such as `rho` and `method`.

        Returns
        -------
        display : HorizonDisplay
        """
        return _display(cls, models, horizons, y, options).plot(ax)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        horizons: ArrayLike,
        y: ArrayLike | None = None,
        *,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the kernels between the training models of a fitted transformer.

        Parameters
        ----------
        estimator : ProductKernel
            Fitted, of models of sequences.
        horizons : array-like of int
            T, increasing.
        y : array-like (n,), optional
            Classes of the training data.
        ax : Axes, optional
            Where to draw; None makes a figure.
        **kwargs
            Properties of the lines, as for ``Axes.plot``.

        Returns
        -------
        display : HorizonDisplay
        """
        models = getattr(estimator, "models_", None)
        if not isinstance(models, list):
            raise ValueError(
                f"{type(estimator).__name__} has no models of sequences; fit a "
                "ProductKernel of such models first."
            )
        options = {"rho": estimator.rho, "method": estimator.method}
        return _display(cls, models, horizons, y, options).plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw.

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
        self.lines_, self.bands_ = {}, {}
        length = self.horizons + 1
        for k, (name, values) in enumerate(self.pairs.items()):
            style = line_style(
                kwargs,
                color=colour(k),
                ls=dashes(k),
                lw=1.8,
                marker="o" if len(length) < 15 else "",
                ms=4,
                label=f"{name} classes" if len(self.pairs) > 1 else "all pairs",
            )
            (self.lines_[name],) = self.ax_.plot(length, self.means[name], **style)
            low, high = np.quantile(values, _SHARES, axis=0)
            self.bands_[name] = self.ax_.fill_between(
                length, low, high, color=style["color"], alpha=0.2, lw=0
            )
        self.ax_.set(
            xlabel="length of the sequences, T + 1",
            ylabel="normalised kernel",
            ylim=(-0.02, 1.04),
        )
        self.legend_ = None
        if len(self.pairs) > 1:
            self.legend_ = self.ax_.legend(fontsize="small", frameon=False)
        fit(self.ax_)
        return self


def _display(cls, models, horizons, y, options):
    """Display of a normalised product kernel, not drawn yet."""
    from maxent.kernels import product_kernel

    horizons = np.atleast_1d(np.asarray(horizons))
    K = product_kernel(models, horizon=horizons, normalize=True, **options)
    return cls(horizons, K, y=y)
