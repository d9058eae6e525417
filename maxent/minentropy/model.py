"""Max-margin min-entropy model with features of one's own."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from maxent._support import validation as v
from maxent._support.typing import ClassWeight, RandomState
from maxent.minentropy._base import MinEntropyBase
from maxent.minentropy.classifier import Init, Solver
from maxent.minentropy.feature_maps import ChainMap, FeatureMap, bind_map, take_samples


class M3EModel(MinEntropyBase):
    """Max-margin min-entropy model of any joint features Psi(x, y, h).

    Scores ``w . Psi(x, y, h)`` of the hidden values h of an output y make one number by
    a Renyi entropy, and the outputs are told apart with a margin: the latent structural
    support vector machine is alpha = inf.

    Parameters
    ----------
    feature_map : {"dense", "ragged"}, ChainMap or FeatureMap, default="dense"
        "dense" takes X of shape (n, K, H, d), or a tuple of it and a mask (n, K, H);
        "ragged" a tuple of rows (N, d), which may be sparse, and of the numbers of
        rows (n, K). A FeatureMap is an object with n_features, hidden_sizes, scores and
        pool: see :func:`check_feature_map`.
    n_outputs : int, optional
        K; then labels are 0 .. K - 1. As many as there are classes by default.
    alpha : float or array-like (K,), default=inf
        Order in [0, inf], or one for each output.
    C : float, default=100.0
        Weight of the margin errors, > 0, divided by the sum of the sample weights.
    loss_matrix : array-like (K, K), optional
        Delta[true, predicted] >= 0 with a zero diagonal.
    init : {"auto", "zero", "random", "path"} or array-like, default="auto"
        Starts, as for :class:`M3EClassifier`.
    n_init : int, default=4
        Random starts.
    solver : {"auto", "prox", "ball", "cccp", "latent_svm"} or TrustBall, default="auto"
        As for :class:`M3EClassifier`.
    temperature : float, default=1.0
        b > 0, the type of the entropy.
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
        Weights.
    classes_, objective_, objective_history_, stationarity_, restarts_, n_iter_
        As for :class:`M3EClassifier`.
    converged_ : bool
        Whether `stationarity_` is within `tol`.

    See Also
    --------
    M3EClassifier : Bags of vectors.
    ChainMap : Hidden states on chains and trees.

    References
    ----------
    Miller, Kumar, Packer, Goodman & Koller (2012), Max-margin min-entropy models. Yu &
    Joachims (2009), Learning structural SVMs with latent variables.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.minentropy import M3EModel
    >>> rng = np.random.default_rng(0)
    >>> y, X = np.arange(40) % 2, np.zeros((40, 2, 3, 4))
    >>> X[:, 0, :, :2] = rng.standard_normal((40, 3, 2))
    >>> X[:, 1, :, 2:] = X[:, 0, :, :2]
    >>> X[y == 1, 0, 1, 0] = X[y == 1, 1, 1, 2] = 9.0
    >>> M3EModel(alpha=4.0, C=100.0, random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        feature_map: Literal["dense", "ragged"] | ChainMap | FeatureMap = "dense",
        n_outputs: int | None = None,
        *,
        alpha: float | ArrayLike = np.inf,
        C: float = 100.0,
        loss_matrix: ArrayLike | None = None,
        init: Init | ArrayLike = "auto",
        n_init: int = 4,
        solver: Solver = "auto",
        temperature: float = 1.0,
        class_weight: ClassWeight = None,
        tol: float = 1e-4,
        max_iter: int = 200,
        qp_tol: float = 1e-8,
        random_state: RandomState = None,
        verbose: bool | int = False,
    ) -> None:
        self.feature_map = feature_map
        self.n_outputs = n_outputs
        self.alpha = alpha
        self.C = C
        self.loss_matrix = loss_matrix
        self.init = init
        self.n_init = n_init
        self.solver = solver
        self.temperature = temperature
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.qp_tol = qp_tol
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        hidden_mask: Any = None,
    ) -> M3EModel:
        """Learn the weights.

        Parameters
        ----------
        X : as `feature_map` takes it
            Samples.
        y : array-like (n,)
            Labels.
        sample_weight : array-like (n,), optional
            Weights >= 0 of the margin errors; 0 drops a sample.
        hidden_mask : list of array-like of bool (H_i,) or (T_i, S), optional
            Which hidden values of its label a sample may have; for ChainMap, which
            states each node may have. None in the list for a sample without
            annotation.

        Returns
        -------
        self : object
            The fitted model.

        Raises
        ------
        ValueError
            For a parameter outside its domain, labels outside the map, features that
            are not finite, and a label without a hidden value.

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
        tags.input_tags.three_d_array = isinstance(self.feature_map, ChainMap)
        return tags

    def _features(self, X, K, fit):
        return bind_map(self.feature_map, X, K)

    def _samples(self, X, index):
        return take_samples(self.feature_map, X, index)

    def _outputs(self, classes):
        if self.n_outputs is None:
            return super()._outputs(classes)
        super()._outputs(classes)
        K = v.check_count("n_outputs", self.n_outputs)
        known = np.arange(K)
        if K < 2 or not np.isin(classes, known).all():
            raise ValueError(
                f"y has the labels {v.shown(classes.tolist())}, which are 0, ..., "
                f"n_outputs - 1 with n_outputs={K}; number them so, or raise n_outputs "
                "(2 or more)."
            )
        return known
