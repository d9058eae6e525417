"""Probabilities of the edges of a random tree, as a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from maxent._support import validation as v
from maxent.discrimination.chow_liu import ChowLiuClassifier
from maxent.discrimination.trees import MEDTreeClassifier
from maxent.displays._axes import GREY, INK, colour, figure_of, make_axes
from maxent.displays._estimators import check_fitted_one, last_step, refusal
from maxent.displays._layout import fit, has_layout_engine, legend_outside
from maxent.displays._trees import (
    check_class_index,
    check_names,
    check_trees,
    class_title,
    default_names,
    tree_shares,
)
from maxent.models.trees._prior import TreePrior
from maxent.models.trees._tree_input import check_edge_values, check_square
from maxent.models.trees.chow_liu import max_spanning_tree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.text import Text
    from numpy.typing import ArrayLike, NDArray
    from sklearn.base import BaseEstimator

_NAME_SIZE = 8.0  # of names, in points, where there is room
_HALO = 1.6  # width of the light border of the tree's edges, in points
_FAINTEST = 0.12  # darkness of an edge of probability zero, of 1
_FAINTEST_OF_TREE = 0.6  # the same for the edges of the tree, which must be seen


class TreeGraphDisplay:
    """Probabilities of the edges of a random tree, as a graph.

    Features stand on a circle. The width and the darkness of an edge are its
    probability. The edges of the most probable tree are on top, in a colour of their
    own and never thinner than `min_width`: where they are thin, no single tree
    represents the dependencies.

    Parameters
    ----------
    probabilities : array-like (n, n)
        Probability that the edge is part of the tree, symmetric; the diagonal is not
        read.
    best_tree : array-like of int (n - 1, 2)
        Edges of the most probable tree.
    feature_names : sequence of str (n,), optional
        None numbers the features from 0.
    title : str, default=""
    tree_name : str, default="most probable tree"
        What the legend calls `best_tree`.

    Attributes
    ----------
    ax_ : Axes
    figure_ : Figure
    edges_ : ndarray of int (k, 2)
        The edges drawn, u < v, from the least probable to the most.
    lines_ : list of LineCollection
        The other edges, then those of the most probable tree; each in the order of
        `edges_`.
    labels_ : list of Text
        Names of the features.
    legend_ : Legend or None
    threshold_ : float
        Probability below which edges outside the tree are not drawn.

    Raises
    ------
    ValueError
        For a matrix that is not symmetric or holds no probabilities, edges that are no
        n - 1 pairs of features, and a wrong number of names.

    See Also
    --------
    EdgeWeightsDisplay : Weights of the edges against mutual informations.
    maxent.discrimination.spanning_tree_log_partition : The probabilities.

    References
    ----------
    Jaakkola, Meila & Jebara (1999), sections 3.3-3.4.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent import MEDTreeClassifier
    >>> from maxent.displays import TreeGraphDisplay
    >>> X = np.random.default_rng(0).integers(0, 3, size=(60, 4))
    >>> y = np.where(X[:, 0] == X[:, 1], "same", "other")
    >>> model = MEDTreeClassifier(level=3.0).fit(X, y)
    >>> display = TreeGraphDisplay.from_estimator(model, class_index=1)
    >>> display.title
    'class same'
    >>> [0, 1] in display.best_tree.tolist()
    True
    """

    ax_: Axes
    figure_: Figure
    edges_: NDArray[np.intp]
    lines_: list[LineCollection]
    labels_: list[Text]
    legend_: Legend | None
    threshold_: float

    def __init__(
        self,
        probabilities: ArrayLike,
        best_tree: ArrayLike,
        *,
        feature_names: Sequence[str] | None = None,
        title: str = "",
        tree_name: str = "most probable tree",
    ) -> None:
        array = check_square("probabilities", probabilities, copies=2, one=True)
        p = check_edge_values("probabilities", array, len(array))
        # the sums over trees are exact up to rounding
        wrong = ~((p >= -1e-9) & (p <= 1 + 1e-9))
        if wrong.any():
            i, j = (int(k) for k in np.argwhere(wrong)[0])
            raise ValueError(
                f"probabilities[{i}, {j}]={p[i, j]:g} is no probability from 0 to 1; "
                "spanning_tree_log_partition(log_weights, marginals=True) turns log "
                "weights into probabilities."
            )
        self.probabilities = np.clip(p, 0.0, 1.0)
        self.best_tree = check_trees("best_tree", best_tree, len(p))
        self.feature_names = check_names(feature_names, len(p))
        self.title = title
        self.tree_name = tree_name

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        *,
        class_index: int = 1,
        feature_names: Sequence[str] | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> TreeGraphDisplay:
        """Draw the trees of a class of a fitted classifier.

        Parameters
        ----------
        estimator : MEDTreeClassifier, ChowLiuClassifier, or a Pipeline that ends in one
            Fitted. The edges of a Chow-Liu tree have probability one.
        class_index : int, default=1
            Place of the class in ``classes_``; 1 is the positive one of two.
        feature_names : sequence of str, optional
            By default the columns of the frame that it was fitted on, or numbers.
        ax : Axes, optional
            None makes a figure.
        **kwargs
            Passed to :meth:`plot`.

        Returns
        -------
        display : TreeGraphDisplay

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.
        ValueError
            For another kind of estimator, a class that it does not have, and a wrong
            number of names.
        """
        machine = last_step(estimator)
        if not isinstance(machine, (MEDTreeClassifier, ChowLiuClassifier)):
            raise refusal(
                estimator,
                "a fitted MEDTreeClassifier or ChowLiuClassifier; for a distribution "
                "over trees, such as posterior_ of a MEDOutlierDetector, use "
                "TreeGraphDisplay.from_trees.",
            )
        check_fitted_one(machine)
        k = check_class_index(class_index, machine.classes_.tolist())
        several = isinstance(machine, MEDTreeClassifier)
        trees = machine.posteriors_[k] if several else machine.models_[k]
        return cls(
            trees.edge_probabilities,
            trees.best_tree,
            feature_names=default_names(machine, feature_names),
            title=class_title(machine, k),
            tree_name="most probable tree" if several else "Chow-Liu tree",
        ).plot(ax, **kwargs)

    @classmethod
    def from_trees(
        cls,
        trees: TreePrior | ArrayLike,
        *,
        class_index: int = 1,
        feature_names: Sequence[str] | None = None,
        title: str = "",
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> TreeGraphDisplay:
        """Draw a distribution over trees, or trees drawn from one.

        Parameters
        ----------
        trees : SpanningTrees, DirichletTrees, or array-like of int
            Such as ``posterior_`` of an outlier detector with trees, or what
            ``sample_trees`` returns: trees (size, n - 1, 2), or those of all classes
            (n_classes, size, n - 1, 2). One tree (n - 1, 2) will do. The probability of
            an edge is then its share of the trees, and the tree in colour has the
            largest sum of such shares.
        class_index : int, default=1
            Which trees to draw of those of all classes.
        feature_names : sequence of str (n,), optional
            None numbers the features from 0.
        title : str, default=""
        ax : Axes, optional
            None makes a figure.
        **kwargs
            Passed to :meth:`plot`.

        Returns
        -------
        display : TreeGraphDisplay

        Raises
        ------
        ValueError
            For anything else than trees, and a wrong number of names.
        """
        if isinstance(trees, TreePrior):
            names: dict[str, Any] = {"feature_names": feature_names, "title": title}
            display = cls(trees.edge_probabilities, trees.best_tree, **names)
            return display.plot(ax, **kwargs)
        shares = tree_shares(trees, class_index)
        with np.errstate(divide="ignore"):
            best = max_spanning_tree(np.log(shares))
        return cls(
            shares,
            best,
            feature_names=feature_names,
            title=title,
            tree_name="tree of the most\nfrequent edges",
        ).plot(ax, **kwargs)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        threshold: float | None = None,
        max_width: float | None = None,
        min_width: float = 1.2,
        legend: bool = True,
        **kwargs: Any,
    ) -> TreeGraphDisplay:
        """Draw.

        Parameters
        ----------
        ax : Axes, optional
            None makes a figure.
        threshold : float, optional
            Edges less probable than this are left out, from 0 to 1; those of the most
            probable tree always stay. None is ``min(0.2, 4 / n)``: with more than 20
            features twice ``2 / n``, the probability of every edge when all trees are
            equally probable.
        max_width : float, optional
            Width of an edge of probability one, in points, > 0. None is
            ``min(6, 120 / n)``.
        min_width : float, default=1.2
            Least width of an edge of the most probable tree, in points, >= 0.
        legend : bool, default=True
            Explain colours and widths, at the right of wide axes and below others.
        **kwargs
            Properties of both collections of lines, as ``alpha``.

        Returns
        -------
        self
        """
        n = len(self.probabilities)
        threshold = _checked_threshold(threshold, n)
        if max_width is None:
            max_width = min(6.0, 120 / n)
        widths = (
            v.check_nonnegative("min_width", min_width),
            v.check_positive("max_width", max_width),
        )
        self.threshold_ = threshold
        self.ax_ = make_axes(ax, (1, 1), (6.4, 4.8))[0, 0]
        self.figure_ = figure_of(self.ax_)
        angle = 2 * np.pi * np.arange(n) / n
        self._places = np.column_stack([np.sin(angle), np.cos(angle)])
        self._draw_lines(threshold, widths, kwargs)
        self._make_round()
        self._draw_names()
        for _ in range(2):  # again with names that were turned in the room left
            turned = self._turned
            self._draw_title()
            self.legend_ = self._draw_legend(threshold, widths) if legend else None
            fit(self.ax_)
            self._size_names()
            if self._turned == turned:
                break
        return self

    def _make_round(self) -> None:
        """Equal scales of both axes, which are not shown."""
        self.ax_.margins(0.03)
        # layout engines do not know beforehand by how much they make a square smaller
        shared = any(
            len(group().get_siblings(self.ax_)) > 1
            for group in (self.ax_.get_shared_x_axes, self.ax_.get_shared_y_axes)
        )
        square = shared or not has_layout_engine(self.ax_)
        self.ax_.set_aspect("equal", adjustable="box" if square else "datalim")
        self.ax_.axis("off")

    # ------------------------------------------------------------------------ edges

    def _draw_lines(
        self, threshold: float, widths: tuple[float, float], kwargs: dict[str, Any]
    ) -> None:
        p = self.probabilities
        best = np.zeros(p.shape, dtype=bool)
        best[tuple(self.best_tree.T)] = True
        shown = ((p >= threshold) & (p > 0)) | best
        edges = np.argwhere(np.triu(shown, 1))
        # the strong ones last, on top
        self.edges_ = edges[np.argsort(p[tuple(edges.T)], kind="stable")]
        of_tree = best[tuple(self.edges_.T)]
        tree, other = self.edges_[of_tree], self.edges_[~of_tree]
        chance, rare = p[tuple(tree.T)], p[tuple(other.T)]
        width = np.maximum(widths[1] * chance, widths[0])
        self._draw_edges(tree, "white", width + _HALO, 1.4, {})
        shades = _shades(colour(5), chance, _FAINTEST_OF_TREE)
        self.lines_ = [
            self._draw_edges(other, _shades(INK, rare), widths[1] * rare, 1.0, kwargs),
            self._draw_edges(tree, shades, width, 1.5, kwargs),
        ]

    def _draw_edges(
        self,
        edges: NDArray[np.intp],
        colours: Any,
        widths: NDArray[np.float64],
        zorder: float,
        kwargs: dict[str, Any],
    ) -> LineCollection:
        from matplotlib.collections import LineCollection

        style = {"linewidths": widths, "colors": colours, "zorder": zorder}
        lines = LineCollection(
            list(self._places[edges]), **{**style, "capstyle": "round", **kwargs}
        )
        self.ax_.add_collection(lines)
        return lines

    # ------------------------------------------------------------------------ names

    def _draw_names(self) -> None:
        dots: dict[str, Any] = {"s": 24, "c": "white", "edgecolors": INK, "zorder": 2}
        self.ax_.scatter(*self._places.T, **dots)
        self.labels_ = []
        style: dict[str, Any] = {"textcoords": "offset points", "fontsize": _NAME_SIZE}
        for (x, y), name in zip(self._places, self.feature_names, strict=True):
            side = "center" if abs(x) < 0.1 else "left" if x > 0 else "right"
            level = "center" if abs(y) < 0.95 else "bottom" if y > 0 else "top"
            text = self.ax_.annotate(
                name,
                (x, y),
                xytext=(6.5 * x, 6.5 * y),
                ha=side,
                va=level,
                annotation_clip=False,
                **style,
            )
            self.labels_.append(text)
        self._turned = False
        self._size_names()

    def _draw_title(self) -> None:
        """The title above the names of the topmost features."""
        top = max(text.get_window_extent().y1 for text in self.labels_)
        pad = 72 * max(top - self.ax_.bbox.y1, 0.0) / self.figure_.dpi + 4
        self.ax_.set_title(self.title, pad=pad)

    def _size_names(self) -> None:
        """Turn names along the radius where they would meet, and make them smaller."""
        self.ax_.apply_aspect()
        dpi = self.figure_.dpi
        unit = self.ax_.transData.transform([[0, 0], [1, 0]])
        radius = 72 * (unit[1, 0] - unit[0, 0]) / dpi + 6.5
        if has_layout_engine(self.ax_):
            radius *= 0.85  # titles and legends still take their part
        room = 2 * np.pi * radius / max(len(self.labels_), 3)  # points for each name
        width = max(text.get_window_extent().width for text in self.labels_) * 72 / dpi
        if not self._turned and max(width, 1.4 * _NAME_SIZE) > room:
            self._turned = True
            for text, (x, y) in zip(self.labels_, self._places, strict=True):
                turn = np.degrees(np.arctan2(y, x))
                left = x < -1e-9
                text.set(
                    rotation=turn + 180 if left else turn,
                    rotation_mode="anchor",
                    ha="right" if left else "left",
                    va="center",
                )
        for text in self.labels_:
            text.set_fontsize(min(_NAME_SIZE, 0.85 * room) if self._turned else 8)

    def _draw_legend(self, threshold: float, widths: tuple[float, float]) -> Legend:
        from matplotlib.lines import Line2D

        half = max(0.5 * widths[1], widths[0])
        handles = [Line2D([], [], color=colour(5), lw=half, label=self.tree_name)]
        if len(self.lines_[0].get_segments()):
            handles.append(Line2D([], [], color=GREY, lw=half, label="other edges"))
            shown = self.probabilities[tuple(self.edges_.T)]
            for p in (1.0, 0.5, 0.1):
                if threshold <= p and shown.min() <= p:
                    (shade,) = _shades(INK, np.array([p]))
                    lw, label = widths[1] * p, f"probability {p:g}"
                    handles.append(Line2D([], [], color=shade, lw=lw, label=label))
        pairs = self.probabilities[np.triu_indices(len(self.probabilities), 1)]
        tree = self.probabilities[tuple(self.best_tree.T)]
        if tree.min() < 0.995:
            label = f"edges of the tree\nfrom {tree.min():.2g} to {tree.max():.2g}"
            handles.append(Line2D([], [], ls="", label=label))
        if ((pairs > 0) & (pairs < threshold)).any():
            label = f"others below {threshold:g}\nnot shown"
            handles.append(Line2D([], [], ls="", label=label))
        return legend_outside(self.ax_, handles)


def _checked_threshold(threshold: float | None, n: int) -> float:
    """The probability below which edges between n features are left out."""
    if threshold is None:
        threshold = float(f"{min(0.2, 4 / n):.2g}")  # as the legend gives it
    threshold = v.check_nonnegative("threshold", threshold)
    if threshold > 1:
        raise ValueError(f"threshold={threshold:g} must be a probability, <= 1.")
    return threshold


def _shades(
    ink: str, p: NDArray[np.float64], faintest: float = _FAINTEST
) -> NDArray[np.float64]:
    """Colours (k, 3) from light to `ink` as probabilities go from 0 to 1."""
    from matplotlib.colors import to_rgb

    dark = faintest + (1 - faintest) * p[:, None]
    return 1.0 - dark * (1.0 - np.array(to_rgb(ink)))
