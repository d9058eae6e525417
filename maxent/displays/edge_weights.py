"""Edge weights of a class of trees against the mutual informations of its rows."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from maxent._inputs.categories import encode_categories, validate_categories
from maxent._support import validation as v
from maxent.discrimination._tree_parameters import check_edge_prior
from maxent.discrimination.trees import MEDTreeClassifier
from maxent.displays._axes import figure_of, make_axes
from maxent.displays._estimators import (
    before_last,
    check_fitted_one,
    last_step,
    refusal,
)
from maxent.displays._layout import fit, has_layout_engine, is_constrained, next_to
from maxent.displays._plane import class_codes
from maxent.displays._trees import (
    check_class_index,
    check_names,
    class_title,
    default_names,
)
from maxent.models.trees._tree_input import check_edge_values, check_square
from maxent.models.trees.chow_liu import chow_liu_tree
from maxent.models.trees.dirichlet_trees import DirichletTrees

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.colorbar import Colorbar
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage
    from numpy.typing import ArrayLike, NDArray
    from sklearn.base import BaseEstimator

_NAME_SIZE = 7.0  # of names, in points
_MOST_NAMES = 30  # names of more features are too small to be read
_NO_EDGE = "0.8"


class EdgeWeightsDisplay:
    """Edge weights of a class against the mutual informations of its rows.

    One square: above the diagonal the logarithms of the edge weights, which training
    has chosen to tell the classes apart; below it the mutual informations, from which
    the most likely tree of the class is built. The colours of the log weights diverge
    from zero: orange raises the probability of an edge, purple lowers it. Those of the
    informations go from zero to the largest. Grey are the diagonal and edges that no
    tree has.

    Parameters
    ----------
    log_weights : array-like (n, n)
        Symmetric, finite or -inf for no edge; the diagonal is not read.
    information : array-like (n, n)
        Mutual informations in nats, symmetric; the diagonal is not read.
    feature_names : sequence of str (n,), optional
        None numbers the features from 0.
    title : str, default=""
    relative : bool, default=False
        Whether `log_weights` are relative to the prior; changes the label only.

    Attributes
    ----------
    ax_ : Axes
    figure_ : Figure
    weights_image_, information_image_ : AxesImage
        Above and below the diagonal; the rest is masked.
    colorbars_ : list of Colorbar
        Above and below the square, in the order of the images.
    centre_ : float
        Log weight that has the colour in the middle: 0 wherever log weights of both
        signs occur.

    Raises
    ------
    ValueError
        For matrices that are not symmetric, of another shape, or with entries that are
        not allowed, and for a wrong number of names.

    See Also
    --------
    TreeGraphDisplay : The probabilities of the edges, as a graph.
    maxent.discrimination.chow_liu_tree : The mutual informations.

    Notes
    -----
    Only differences of log weights count: a constant added to all of them leaves the
    distribution over trees as it is. Without training, log weights relative to the
    prior are 0. Where all log weights have one sign, as those of random tables, which
    contain the likelihood of the rows, the colours diverge from their mean.

    References
    ----------
    Jaakkola, Meila & Jebara (1999), figure 8.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent import MEDTreeClassifier
    >>> from maxent.displays import EdgeWeightsDisplay
    >>> X = np.random.default_rng(0).integers(0, 3, size=(60, 4))
    >>> y = np.where(X[:, 0] == X[:, 1], "same", "other")
    >>> model = MEDTreeClassifier(level=3.0).fit(X, y)
    >>> display = EdgeWeightsDisplay.from_estimator(model, X, y, class_index=1)
    >>> u, v = np.unravel_index(display.log_weights.argmax(), (4, 4))
    >>> int(u), int(v)
    (0, 1)
    """

    ax_: Axes
    figure_: Figure
    weights_image_: AxesImage
    information_image_: AxesImage
    colorbars_: list[Colorbar]
    centre_: float

    def __init__(
        self,
        log_weights: ArrayLike,
        information: ArrayLike,
        *,
        feature_names: Sequence[str] | None = None,
        title: str = "",
        relative: bool = False,
    ) -> None:
        self.log_weights = check_square("log_weights", log_weights, copies=2, one=True)
        n = len(self.log_weights)
        check_square("information", information, copies=2, one=True)
        self.information = check_edge_values("information", information, n)
        self.feature_names = check_names(feature_names, n)
        self.title = title
        self.relative = relative

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: ArrayLike,
        y: ArrayLike,
        *,
        class_index: int = 1,
        sample_weight: ArrayLike | None = None,
        relative: bool = False,
        feature_names: Sequence[str] | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> EdgeWeightsDisplay:
        """Draw log weights of a classifier, and mutual informations of its rows.

        Parameters
        ----------
        estimator : MEDTreeClassifier, or a Pipeline that ends in one
            Fitted.
        X : array-like (n_samples, n_features)
            The training rows, or others of known categories.
        y : array-like (n_samples,)
            Their labels.
        class_index : int, default=1
            Place of the class in ``classes_``; 1 is the positive one of two.
        sample_weight : array-like (n_samples,), optional
            Weights >= 0 of the rows.
        relative : bool, default=False
            Subtract the log weights before training: those of the edge prior, and with
            ``parameters="dirichlet"`` those of the Bayes posterior of the rows of the
            class, for which X, y and `sample_weight` must be those of the fit.
        feature_names : sequence of str, optional
            By default the columns of the frame that it was fitted on, or numbers.
        ax : Axes, optional
            None makes a figure.
        **kwargs
            Passed to :meth:`plot`.

        Returns
        -------
        display : EdgeWeightsDisplay
            Mutual informations are smoothed by the classifier's `ess`, as its tables.

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.
        ValueError
            For another kind of estimator, a class that it does not have or that has no
            row, other shapes, and categories that were unseen in training.
        """
        machine = last_step(estimator)
        if not isinstance(machine, MEDTreeClassifier):
            raise refusal(
                estimator,
                "a fitted MEDTreeClassifier, whose edges have weights; "
                "TreeGraphDisplay draws the trees of a ChowLiuClassifier too.",
            )
        check_fitted_one(machine)
        k = check_class_index(class_index, machine.classes_.tolist())
        codes, weight = _class_rows(estimator, machine, X, y, sample_weight, k)
        _, information = chow_liu_tree(
            codes,
            sample_weight=weight,
            ess=machine.ess,
            n_categories=_sizes(machine),
            return_information=True,
        )
        return cls(
            _log_weights(machine, k, codes, weight, relative),
            information,
            feature_names=default_names(machine, feature_names),
            title=class_title(machine, k),
            relative=relative,
        ).plot(ax, **kwargs)

    def plot(
        self, ax: Axes | None = None, *, colorbar: bool = True, **kwargs: Any
    ) -> EdgeWeightsDisplay:
        """Draw.

        Parameters
        ----------
        ax : Axes, optional
            None makes a figure.
        colorbar : bool, default=True
            Draw the two scales.
        **kwargs
            Properties of both images, as ``interpolation``; see ``Axes.imshow``.

        Returns
        -------
        self
        """
        self.ax_ = make_axes(ax, (1, 1), (5.4, 6.8))[0, 0]
        self.figure_ = figure_of(self.ax_)
        engine: Any = self.figure_.get_layout_engine()
        if ax is None and engine is not None:
            # by 0.05 inch it puts labels of the lower scale too low
            engine.set(h_pad=0.1)
        n = len(self.log_weights)
        below = np.tri(n, dtype=bool)
        weights = np.ma.array(
            self.log_weights, mask=below | np.isneginf(self.log_weights)
        )
        self.centre_, reach = _diverging(weights.compressed())
        ends = {"vmin": self.centre_ - reach, "vmax": self.centre_ + reach}
        style = {"cmap": "PuOr_r", **ends, **kwargs}
        self.weights_image_ = self.ax_.imshow(weights, **style)
        information = np.ma.array(self.information, mask=below.T)
        style = {"cmap": "Blues", "vmin": 0.0, "vmax": information.max() or 1.0}
        self.information_image_ = self.ax_.imshow(information, **{**style, **kwargs})
        self.ax_.set_facecolor(_NO_EDGE)
        self._draw_names()
        self.colorbars_ = self._draw_scales() if colorbar else []
        self.ax_.set_title(self.title)
        fit(self.ax_)
        self._draw_names()  # fewer, in a smaller square
        self._space_labels(self.colorbars_)
        return self

    def _draw_names(self) -> None:
        self.ax_.apply_aspect()
        size = 72 * self.ax_.bbox.height / self.figure_.dpi
        if has_layout_engine(self.ax_):
            size *= 0.85  # titles and scales still take their part
        n = len(self.log_weights)
        most = max(1, min(_MOST_NAMES, int(size / (1.15 * _NAME_SIZE))))
        step = -(-n // most)
        names = self.feature_names[::step]
        # digits are 0.64 of their size wide
        turned = 0.75 * _NAME_SIZE * max(map(len, names)) > size * step / n
        style: dict[str, Any] = {"fontsize": _NAME_SIZE}
        self.ax_.set_yticks(range(0, n, step), names, **style)
        style["rotation"] = 90 if turned else 0
        self.ax_.set_xticks(range(0, n, step), names, **style)

    def _draw_scales(self) -> list[Colorbar]:
        what = "log weight / prior weight" if self.relative else "log weight of edge"
        parts = (
            (self.weights_image_, "above", f"above the diagonal: {what}"),
            (self.information_image_, "below", "below: mutual information (nats)"),
        )
        bars = []
        for image, side, label in parts:
            end = "top" if side == "above" else "bottom"
            room: dict[str, Any]
            if is_constrained(self.ax_):
                room = {"ax": self.ax_, "location": end, "shrink": 0.8, "aspect": 30}
            else:
                # in coordinates of the axes, past the names of the features
                place = self.ax_.inset_axes(
                    (0.1, 1.0 if side == "above" else -0.03, 0.8, 0.03),
                    transform=next_to(self.ax_, side),
                )
                room = {"cax": place, "orientation": "horizontal", "ticklocation": end}
            bar = self.figure_.colorbar(image, **room)
            bar.set_label(label, fontsize="small")
            bar.ax.tick_params(labelsize="small")
            bars.append(bar)
        return bars

    def _space_labels(self, bars: list[Colorbar]) -> None:
        """As many numbers along the scales as leave gaps between them."""
        from matplotlib.ticker import MaxNLocator

        for bar in bars:
            for most in (4, 3, 2, 1):
                bar.locator = MaxNLocator(most, min_n_ticks=1)
                bar.update_ticks()
                low, high = sorted(bar.ax.get_xlim())
                labels = zip(bar.ax.get_xticks(), bar.ax.get_xticklabels(), strict=True)
                boxes = [t.get_window_extent() for x, t in labels if low <= x <= high]
                gaps = [b.x0 - a.x1 for a, b in pairwise(boxes)]
                if not gaps or min(gaps) > 0.05 * self.figure_.dpi:
                    break


def _diverging(values: NDArray[np.float64]) -> tuple[float, float]:
    """Middle and half width of the colours of log weights."""
    if not values.size:
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    centre = 0.0 if low <= 0.0 <= high else float(values.mean())
    return centre, max(high - centre, centre - low) or 1.0


def _sizes(machine: MEDTreeClassifier) -> list[int]:
    """Number of categories of every feature."""
    return [len(known) for known in machine.categories_]


def _log_weights(
    machine: MEDTreeClassifier,
    k: int,
    codes: NDArray[np.integer[Any]],
    weight: NDArray[np.float64],
    relative: bool,
) -> NDArray[np.float64]:
    """Log weights of class k, or what training has added to them."""
    log_weights = np.array(machine.posteriors_[k].log_weights)
    if relative:
        before = _log_weights_before(machine, codes, weight)
        there = ~np.isneginf(log_weights)
        log_weights[there] -= before[there]
    return log_weights


def _log_weights_before(
    machine: MEDTreeClassifier,
    codes: NDArray[np.integer[Any]],
    weight: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Log weights of a class without any multiplier."""
    sizes = _sizes(machine)
    edges = check_edge_prior(machine.edge_prior, len(sizes))
    if machine.parameters == "dirichlet":
        prior = DirichletTrees(float(machine.ess), sizes, edges)
        return np.asarray(prior.posterior(codes, weight).log_weights)
    return np.zeros((len(sizes),) * 2) if edges is None else edges


def _class_rows(
    estimator: BaseEstimator,
    machine: MEDTreeClassifier,
    X: Any,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    k: int,
) -> tuple[NDArray[np.integer[Any]], NDArray[np.float64]]:
    """Codes and positive weights of the rows of class k."""
    X = validate_categories(machine, before_last(estimator, X), reset=False)
    labels = class_codes(y, machine.classes_, len(X))
    weight = v.check_weights(sample_weight, len(X))
    weight = np.ones(len(X)) if weight is None else weight
    own = (labels == k) & (weight > 0)
    if not own.any():
        raise ValueError(
            f"y has no row of class {machine.classes_.tolist()[k]!r} with a positive "
            "weight; give the training rows."
        )
    codes = encode_categories(X, machine.categories_, "ignore", machine.missing)
    unknown = (codes < 0) & own[:, None]
    if unknown.any():
        i, j = (int(at) for at in np.argwhere(unknown)[0])
        raise ValueError(
            f"X[{i}, {j}] = {v.shown(X[i, j])} is a category unseen in training; give "
            "the training rows, or leave such rows out."
        )
    return codes[own], weight[own]
