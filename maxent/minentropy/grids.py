"""Max-margin min-entropy classifier of images: a template at an unknown place."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxent._support import validation as v
from maxent._support.typing import ClassWeight, FloatArray, RandomState
from maxent.minentropy._base import MinEntropyBase
from maxent.minentropy._features import listed_masks
from maxent.minentropy._grid_features import GridFeatures, windows_with
from maxent.minentropy.classifier import Init, Solver


def gradient_cells(
    images: ArrayLike,
    cell: int = 4,
    bins: int = 9,
    *,
    signed: bool = False,
    normalise: bool = True,
) -> FloatArray:
    """Return histograms of oriented gradients in the cells of images.

    A pixel adds the size of its gradient to the two bins nearest to its orientation,
    in the cell it lies in.

    Parameters
    ----------
    images : array-like (n, height, width)
        Grey images; rows and columns beyond whole cells are left out.
    cell : int, default=4
        Pixels along a side of a cell.
    bins : int, default=9
        Orientations.
    signed : bool, default=False
        Tell dark-to-light from light-to-dark.
    normalise : bool, default=True
        Divide every cell by the norm of its neighbourhood of 3 x 3 cells.

    Returns
    -------
    ndarray (n, height // cell, width // cell, bins)
        Features of the cells.

    Raises
    ------
    ValueError
        For images that are not three-dimensional, not finite, or smaller than a cell.

    References
    ----------
    Dalal & Triggs (2005), Histograms of oriented gradients for human detection.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.minentropy import gradient_cells
    >>> gradient_cells(np.tile(np.arange(8.0), (2, 8, 1))).shape
    (2, 2, 2, 9)
    """
    images = v.as_doubles("images", images)
    cell, bins = v.check_count("cell", cell), v.check_count("bins", bins)
    if images.ndim != 3 or min(images.shape[1:], default=0) < max(cell, 2):
        raise ValueError(
            f"images has shape {images.shape}; (n, height, width) is needed, with "
            f"{max(cell, 2)} pixels or more along a side."
        )
    v.check_entries("images", images, "fill such pixels, or drop their images")
    n, R, C = len(images), images.shape[1] // cell, images.shape[2] // cell
    gradient: Any = np.gradient(images, axis=(1, 2))
    down, along = gradient
    down, along = (g[:, : R * cell, : C * cell] for g in (down, along))
    size = np.hypot(down, along)
    turn = 2.0 * np.pi if signed else np.pi
    place = np.mod(np.arctan2(down, along), turn) * (bins / turn) - 0.5
    low = np.floor(place).astype(np.intp)
    share = place - low
    row = np.repeat(np.arange(R), cell)[:, None]
    column = np.repeat(np.arange(C), cell)
    own = ((np.arange(n)[:, None, None] * R + row) * C + column) * bins
    count = n * R * C * bins
    out = np.bincount((own + low % bins).ravel(), (size * (1 - share)).ravel(), count)
    out += np.bincount((own + (low + 1) % bins).ravel(), (size * share).ravel(), count)
    cells: Any = out.reshape(n, R, C, bins)
    return _normalised(cells) if normalise else cells


def _normalised(cells: FloatArray) -> FloatArray:
    """Cells over the root mean square norm of the 3 x 3 cells about them."""
    R, C = cells.shape[1:3]
    energy = np.pad((cells**2).sum(axis=3), ((0, 0), (1, 1), (1, 1)), mode="edge")
    around = sum(energy[:, i : i + R, j : j + C] for i in range(3) for j in range(3))
    largest = float(energy.max(initial=0.0))
    return cells / np.sqrt(around / 9.0 + 1e-6 * largest + 1e-300)[..., None]


def _filled(cells, sizes, hidden_mask):
    """Cells without missing ones, and the windows (n, H) that had some, or None.

    A missing cell is allowed in windows that the mask of its image leaves out.
    """
    missing = ~np.isfinite(cells).all(axis=3)
    absent = None
    if hidden_mask is not None and missing.any():
        absent = windows_with(missing, sizes)
        for i, mask in enumerate(listed_masks(hidden_mask)[: len(cells)]):
            mask = np.asarray(mask)  # its own checks follow
            if mask.dtype == bool and mask.shape == absent[i].shape:
                missing[i] &= not (absent[i] & mask).any()
            else:
                missing[i] = False
        cells = np.where(missing[..., None], 0.0, cells)
    remedy = "fill such cells, drop their images, or leave out windows by hidden_mask"
    v.check_entries("X", cells, remedy)
    return cells, absent


class M3EGridClassifier(MinEntropyBase):
    """Max-margin min-entropy classifier of images, by a template at a hidden place.

    An image is a grid of cells with features, such as :func:`gradient_cells` makes. The
    object that its label is about lies in a window of known size at an unknown place.

    Parameters
    ----------
    template : tuple (int, int) or list of them, default=(4, 4)
        Rows and columns of the window in cells; with several sizes the size is hidden
        too.
    alpha : float or array-like (n_classes,), default=inf
        Order in [0, inf].
    C : float, default=100.0
        Weight of the margin errors, > 0, divided by the sum of the sample weights.
    mode : {"auto", "blocks", "one_sided"}, default="auto"
        As for :class:`M3EClassifier`.
    pos_label : label, optional
        Class of the images with the object, for a one-sided model; ``classes_[1]``, the
        last in sorted order, by default.
    loss_matrix : array-like (n_classes, n_classes), optional
        Delta[true, predicted] >= 0 with a zero diagonal.
    init : {"auto", "zero", "random", "path"} or array-like, default="auto"
        Starts, as for :class:`M3EClassifier`.
    n_init : int, default=4
        Random starts.
    solver : {"auto", "prox", "ball", "cccp", "latent_svm"} or TrustBall, default="auto"
        As for :class:`M3EClassifier`.
    temperature : float, default=1.0
        b > 0, the type of the entropy.
    fit_intercept : bool, default=True
        A constant for every template, penalised at the mean of the cells: fits do not
        depend on their origin.
    class_weight : dict, "balanced" or None, default=None
        Factors of C by class, 1 of those that a dict leaves out.
    tol : float, default=1e-4
        Stationarity that ends learning.
    max_iter : int, default=200
        Bound on the outer steps of each start.
    qp_tol : float, default=1e-8
        Relative gap of the margin problems.
    random_state : int, Generator, RandomState or None, default=None
        Of the random starts.
    verbose : bool or int, default=False
        Print progress: time, solver, iteration, objective and how far from `tol`.

    Attributes
    ----------
    coef_ : ndarray (d,)
        Weights: by output and template its cells, then the constants.
    classes_, objective_, objective_history_, stationarity_, restarts_, n_iter_
        As for :class:`M3EClassifier`.
    converged_ : bool
        Whether `stationarity_` is within `tol`.

    See Also
    --------
    gradient_cells : Cells of oriented gradients.

    References
    ----------
    Miller, Kumar, Packer, Goodman & Koller (2012), section 5.2. Felzenszwalb,
    McAllester & Ramanan (2008), A discriminatively trained, multiscale, deformable part
    model.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.minentropy import M3EGridClassifier
    >>> rng = np.random.default_rng(0)
    >>> y, X = np.arange(60) % 2, 0.3 * rng.standard_normal((60, 6, 6, 1))
    >>> for i in np.flatnonzero(y):
    ...     row, column = rng.integers(5, size=2)
    ...     X[i, row : row + 2, column : column + 2, 0] += [[2.0, -2.0], [-2.0, 2.0]]
    >>> model = M3EGridClassifier((2, 2), alpha=2.0, C=50.0, random_state=0)
    >>> model.fit(X, y).score(X, y)
    1.0
    """

    def __init__(
        self,
        template: tuple[int, int] | list[tuple[int, int]] = (4, 4),
        alpha: float | ArrayLike = np.inf,
        C: float = 100.0,
        *,
        mode: str = "auto",
        pos_label: Any = None,
        loss_matrix: ArrayLike | None = None,
        init: Init | ArrayLike = "auto",
        n_init: int = 4,
        solver: Solver = "auto",
        temperature: float = 1.0,
        fit_intercept: bool = True,
        class_weight: ClassWeight = None,
        tol: float = 1e-4,
        max_iter: int = 200,
        qp_tol: float = 1e-8,
        random_state: RandomState = None,
        verbose: bool | int = False,
    ) -> None:
        self.template = template
        self.alpha = alpha
        self.C = C
        self.mode = mode
        self.pos_label = pos_label
        self.loss_matrix = loss_matrix
        self.init = init
        self.n_init = n_init
        self.solver = solver
        self.temperature = temperature
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.qp_tol = qp_tol
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        hidden_mask: Any = None,
    ) -> M3EGridClassifier:
        """Learn templates.

        Parameters
        ----------
        X : array-like (n, R, C, p) or (n, R, C)
            Cells of images with p features.
        y : array-like (n,)
            Labels of two or more classes.
        sample_weight : array-like (n,), optional
            Weights >= 0 of the margin errors; 0 drops an image.
        hidden_mask : list of array-like of bool (places,), optional
            Where the window may be, the places of all templates row by row; None in
            the list for an image without annotation. Cells may be missing where all
            windows that cover them are left out.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            For a parameter outside its domain, cells that are not finite, a template
            larger than the grid, and fewer than two classes.

        Warns
        -----
        ConvergenceWarning
            If the stationarity is above `tol`.
        UserWarning
            If w = 0 is nearly stationary, so that random starts were made as well, and
            if all training samples are given one class.
        """
        return self._learn(X, y, sample_weight, hidden_mask)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        return tags

    def _training_features(self, X, K, hidden_mask):
        return self._features(X, K, True, hidden_mask)

    def _features(self, X, K, fit, hidden_mask=None):
        cells = v.as_doubles("X", X)
        cells = cells[..., None] if cells.ndim == 3 else cells
        if cells.ndim != 4 or not cells.size:
            raise ValueError(
                f"X has shape {cells.shape}; cells of shape (n, rows, columns, p) are "
                "needed."
            )
        sizes = self._sizes(cells.shape[1:3])
        given, (cells, absent) = cells, _filled(cells, sizes, hidden_mask)
        v.check_range("X", cells)
        cells = np.ascontiguousarray(cells)
        one_sided = self._one_sided(K)
        features = GridFeatures(cells, sizes, K, one_sided, bool(self.fit_intercept))
        if absent is not None:
            features.missing = ~np.isfinite(given).all(axis=3)
            features.remove(absent.ravel())
        return features

    def _sizes(self, grid):
        given = np.atleast_2d(v.as_doubles("template", self.template))
        if given.ndim != 2 or given.shape[1] != 2 or (given != np.floor(given)).any():
            raise ValueError(
                f"template={v.shown(self.template)} must be (rows, columns), or a list "
                "of such pairs."
            )
        if (given < 1).any() or (given > np.array(grid)).any():
            raise ValueError(
                f"template={v.shown(self.template)} does not fit a grid of {grid} "
                "cells; every side is from 1 to that of the grid."
            )
        return [(int(h), int(w)) for h, w in given]

    def predict_window(
        self, X: ArrayLike, y: ArrayLike | None = None
    ) -> NDArray[np.intp]:
        """Return the best window of each image.

        Parameters
        ----------
        X : array-like (n, R, C, p) or (n, R, C)
            Cells of images.
        y : array-like (n,), optional
            Outputs whose windows are wanted; the predicted ones by default.

        Returns
        -------
        ndarray of int (n, 4)
            First row and column of the window, and how many it has of them.
        """
        features, _ = self._bound(X)
        place = self.predict_hidden(X, y)
        ends = np.cumsum([0, *features.places])
        k = np.searchsorted(ends, place, side="right") - 1
        h, w = np.array(features.sizes)[k].T
        row, column = np.divmod(place - ends[k], features.C - w + 1)
        return np.column_stack([row, column, h, w])

    def window_coverage(self, X: ArrayLike, y: ArrayLike | None = None) -> FloatArray:
        """Return the probability of every cell to lie in the window.

        Parameters
        ----------
        X : array-like (n, R, C, p) or (n, R, C)
            Cells of images.
        y : array-like (n,), optional
            Outputs whose windows are meant; the predicted ones by default.

        Returns
        -------
        ndarray (n, R, C)
            Sums of the posteriors of the windows that cover a cell; zeros for the
            output of a one-sided model that has none.
        """
        features, _ = self._bound(X)
        out = np.zeros((features.n, features.R, features.C))
        for i, p in enumerate(self.hidden_proba(X, y)):
            if len(p) == features.H:
                features.cover(p, out[i])
        return out
