"""Edge weights of a class of trees against the mutual informations of its rows."""

from __future__ import annotations

import numpy as np

from maxent._support import validation as v
from maxent._support.categories import encode_categories
from maxent.discrimination._tree_parameters import check_edge_prior
from maxent.displays._axes import make_axes
from maxent.displays._trees import (
    check_names,
    class_title,
    default_names,
    tree_machine,
)
from maxent.displays.boundary import _codes
from maxent.models.trees._checks import check_edge_values, check_square
from maxent.models.trees.chow_liu import chow_liu_tree
from maxent.models.trees.dirichlet_trees import DirichletTrees

_MOST_NAMES = 30  # names of more features would run into one another
_NO_EDGE = "0.8"


class EdgeWeightsDisplay:
    """Edge weights of a class against the mutual informations of its rows.

    One square: above the diagonal the logarithms of the edge weights, which training
    has chosen to tell the classes apart; below it the mutual informations, from which
    the most likely tree of the class is built. Each triangle has its own scale, up to
    its own largest entry: from zero for the informations, from the least entry for the
    log weights. Grey are the diagonal and edges that no tree has.

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
    distribution over trees as it is. This is why their colours start at the least.

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

    def __init__(
        self, log_weights, information, *, feature_names=None, title="", relative=False
    ):
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
        estimator,
        X,
        y,
        *,
        class_index=1,
        sample_weight=None,
        relative=False,
        feature_names=None,
    ):
        """Log weights of a fitted classifier, mutual informations of rows of a class.

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
        machine, k = tree_machine(estimator, class_index)
        codes, own, weight = _class_rows(estimator, machine, X, y, sample_weight, k)
        sizes = [len(known) for known in machine.categories_]
        _, information = chow_liu_tree(
            codes[own],
            sample_weight=weight[own],
            ess=machine.ess,
            n_categories=sizes,
            return_information=True,
        )
        log_weights = np.array(machine.posteriors_[k].log_weights)
        if relative:
            before = _log_weights_before(machine, codes[own], weight[own], sizes)
            there = ~np.isneginf(log_weights)
            log_weights[there] -= before[there]
        return cls(
            log_weights,
            information,
            feature_names=default_names(machine, feature_names),
            title=class_title(machine, k),
            relative=relative,
        )

    def plot(self, ax=None, *, colorbar=True):
        """Draw.

        Parameters
        ----------
        ax : Axes, optional
            None makes a figure.
        colorbar : bool, default=True
            Draw the two scales.

        Returns
        -------
        self
        """
        self.ax_ = make_axes(ax, (1, 1), (5.4, 6.6))[0, 0]
        self.figure_ = self.ax_.figure
        n = len(self.log_weights)
        below = np.tri(n, dtype=bool)
        weights = np.ma.array(
            self.log_weights, mask=below | np.isneginf(self.log_weights)
        )
        self.weights_image_ = self.ax_.imshow(
            weights, "Oranges", **_scale(weights, weights.min())
        )
        information = np.ma.array(self.information, mask=below.T)
        self.information_image_ = self.ax_.imshow(
            information, "Blues", **_scale(information, 0.0)
        )
        self.ax_.set(facecolor=_NO_EDGE, title=self.title)
        step = -(-n // _MOST_NAMES)
        names = self.feature_names[::step]
        turned = {"rotation": 90} if max(map(len, names)) > 2 else {}
        self.ax_.set_xticks(range(0, n, step), names, fontsize="x-small", **turned)
        self.ax_.set_yticks(range(0, n, step), names, fontsize="x-small")
        self.colorbars_ = self._draw_scales() if colorbar else []
        return self

    def _draw_scales(self):
        what = "log weight / prior weight" if self.relative else "log weight of edge"
        parts = (
            (self.weights_image_, "top", f"above the diagonal: {what}"),
            (self.information_image_, "bottom", "below: mutual information (nats)"),
        )
        return [
            self.figure_.colorbar(
                image, ax=self.ax_, location=side, label=label, shrink=0.8, aspect=30
            )
            for image, side, label in parts
        ]


def _scale(values, low):
    """Where the colours of a triangle begin and end."""
    top = values.max()
    return {"vmin": low, "vmax": top if top > low else low + 1.0}


def _log_weights_before(machine, codes, weight, sizes):
    """Log weights of a class without any multiplier."""
    edges = check_edge_prior(machine.edge_prior, len(sizes))
    if machine.parameters == "dirichlet":
        prior = DirichletTrees(float(machine.ess), sizes, edges)
        return prior.posterior(codes, weight).log_weights
    return np.zeros((len(sizes),) * 2) if edges is None else edges


def _class_rows(estimator, machine, X, y, sample_weight, k):
    """Codes of all rows, which belong to class k with a weight, and their weights."""
    from sklearn.utils.validation import validate_data

    if machine is not estimator:
        X = estimator[:-1].transform(X)
    X = validate_data(machine, X, dtype=None, reset=False)
    labels = _codes(y, machine.classes_, len(X))
    weight = v.check_weights(sample_weight, len(X))
    weight = np.ones(len(X)) if weight is None else weight
    own = (labels == k) & (weight > 0)
    if not own.any():
        raise ValueError(
            f"y has no row of class {machine.classes_.tolist()[k]!r} with a positive "
            "weight; give the training rows."
        )
    codes = encode_categories(X, machine.categories_, "ignore")
    unknown = (codes < 0) & own[:, None]
    if unknown.any():
        i, j = (int(at) for at in np.argwhere(unknown)[0])
        raise ValueError(
            f"X[{i}, {j}] = {v.shown(X[i, j])} is a category unseen in training; give "
            "the training rows, or leave such rows out."
        )
    return codes, own, weight
