"""Probabilities of the edges of a random tree, as a graph."""

from __future__ import annotations

import numpy as np

from maxent._support import validation as v
from maxent.displays._axes import GREY, INK, colour, make_axes
from maxent.displays._trees import (
    check_names,
    class_title,
    default_names,
    tree_machine,
)
from maxent.models.trees._checks import check_edge_values, check_square
from maxent.models.trees._prior import TreePrior


class TreeGraphDisplay:
    """Probabilities of the edges of a random tree, as a graph.

    Features stand on a circle. The width and the darkness of an edge are its
    probability, and the edges of the most probable tree have a colour of their own:
    where these are thin, no single tree says how the features depend on one another.

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

    def __init__(self, probabilities, best_tree, *, feature_names=None, title=""):
        check_square("probabilities", probabilities, copies=2, one=True)
        p = check_edge_values("probabilities", probabilities, len(probabilities))
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
        self.best_tree = _check_tree(best_tree, len(p))
        self.feature_names = check_names(feature_names, len(p))
        self.title = title

    @classmethod
    def from_estimator(cls, estimator, *, class_index=1, feature_names=None):
        """Trees of a class of a fitted classifier.

        Parameters
        ----------
        estimator : MEDTreeClassifier, or a Pipeline that ends in one
            Fitted.
        class_index : int, default=1
            Place of the class in ``classes_``; 1 is the positive one of two.
        feature_names : sequence of str, optional
            By default the columns of the frame that it was fitted on, or numbers.

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
        machine, k = tree_machine(estimator, class_index)
        return cls.from_trees(
            machine.posteriors_[k],
            feature_names=default_names(machine, feature_names),
            title=class_title(machine, k),
        )

    @classmethod
    def from_trees(cls, trees, *, feature_names=None, title=""):
        """A distribution over trees.

        Parameters
        ----------
        trees : SpanningTrees or DirichletTrees
            Such as ``posterior_`` of an outlier detector with trees.
        feature_names : sequence of str (n,), optional
            None numbers the features from 0.
        title : str, default=""

        Returns
        -------
        display : TreeGraphDisplay

        Raises
        ------
        ValueError
            For anything else than trees, and a wrong number of names.
        """
        if not isinstance(trees, TreePrior):
            raise ValueError(
                f"trees={v.shown(trees)} must be SpanningTrees or DirichletTrees; for "
                "a classifier use from_estimator."
            )
        return cls(
            trees.edge_probabilities,
            trees.best_tree,
            feature_names=feature_names,
            title=title,
        )

    def plot(self, ax=None, *, threshold=0.05, max_width=6.0, legend=True):
        """Draw.

        Parameters
        ----------
        ax : Axes, optional
            None makes a figure.
        threshold : float, default=0.05
            Edges less probable than this are left out, from 0 to 1; those of the most
            probable tree always stay.
        max_width : float, default=6.0
            Width of an edge of probability one, in points, > 0.
        legend : bool, default=True
            Explain colours and widths at the right of the axes.

        Returns
        -------
        self
        """
        threshold = v.check_nonnegative("threshold", threshold)
        if threshold > 1:
            raise ValueError(f"threshold={threshold:g} must be a probability, <= 1.")
        width = v.check_positive("max_width", max_width)
        self.ax_ = make_axes(ax, (1, 1), (6.4, 4.8))[0, 0]
        self.figure_ = self.ax_.figure
        n = len(self.probabilities)
        angle = 2 * np.pi * np.arange(n) / n
        self._places = np.column_stack([np.sin(angle), np.cos(angle)])
        best = np.zeros((n, n), dtype=bool)
        best[tuple(self.best_tree.T)] = True
        p = self.probabilities
        edges = np.argwhere(np.triu((p >= threshold) | best, 1))
        # the strong ones last, on top
        self.edges_ = edges[np.argsort(p[tuple(edges.T)], kind="stable")]
        of_tree = best[tuple(self.edges_.T)]
        self.lines_ = [
            self._draw_edges(self.edges_[~of_tree], INK, width, 1.0),
            self._draw_edges(self.edges_[of_tree], colour(5), width, 1.5),
        ]
        self._draw_names()
        self.ax_.set(aspect="equal", xlim=(-1.1, 1.1), ylim=(-1.1, 1.1))
        # a title without a name below it would lie on the topmost feature's name
        self.ax_.set_title(self.title, pad=20)
        self.ax_.axis("off")
        self.legend_ = self._draw_legend(threshold, width) if legend else None
        return self

    def _draw_edges(self, edges, ink, width, zorder):
        from matplotlib.collections import LineCollection

        p = self.probabilities[tuple(edges.T)]
        lines = LineCollection(
            self._places[edges],
            linewidths=width * p,
            colors=_shades(ink, p),
            capstyle="round",
            zorder=zorder,
        )
        return self.ax_.add_collection(lines)

    def _draw_names(self):
        style = {"s": 24, "c": "white", "edgecolors": INK, "zorder": 2}
        self.ax_.scatter(*self._places.T, **style)
        self.labels_ = []
        for (x, y), name in zip(self._places, self.feature_names, strict=True):
            side = "center" if abs(x) < 0.1 else "left" if x > 0 else "right"
            level = "center" if abs(y) < 0.95 else "bottom" if y > 0 else "top"
            text = self.ax_.text(
                1.08 * x, 1.08 * y, name, ha=side, va=level, fontsize="small"
            )
            self.labels_.append(text)

    def _draw_legend(self, threshold, width):
        from matplotlib.lines import Line2D

        handles = [
            Line2D([], [], color=colour(5), lw=0.5 * width, label="most probable tree"),
            Line2D([], [], color=GREY, lw=0.5 * width, label="other edges"),
        ]
        for p in (1.0, 0.5, 0.1):
            if p >= threshold:
                (shade,) = _shades(INK, np.array([p]))
                label = f"probability {p:g}"
                handles.append(Line2D([], [], color=shade, lw=width * p, label=label))
        if threshold > 0:
            label = f"others below {threshold:g}\nnot shown"
            handles.append(Line2D([], [], ls="", label=label))
        return self.ax_.legend(
            handles=handles,
            loc="upper left",
            bbox_to_anchor=(1.12, 1.0),
            borderaxespad=0.0,
            frameon=False,
            fontsize="small",
        )


def _shades(ink, p):
    """Colours (k, 3) from light to `ink` as probabilities go from 0 to 1."""
    from matplotlib.colors import to_rgb

    return 1.0 - (0.12 + 0.88 * p[:, None]) * (1.0 - np.array(to_rgb(ink)))


def _check_tree(best_tree, n):
    edges = np.asarray(best_tree)
    if edges.shape != (n - 1, 2):
        raise ValueError(
            f"best_tree has shape {edges.shape}; a tree over {n} features has the "
            f"shape ({n - 1}, 2)."
        )
    if edges.dtype.kind not in "iu" or edges.min() < 0 or edges.max() >= n:
        raise ValueError(
            f"best_tree={v.shown(edges.tolist())} must hold integers from 0 to {n - 1}."
        )
    return np.sort(edges, axis=1)
