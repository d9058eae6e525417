"""Max-margin min-entropy classifier of bags of vectors."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from maxent._inputs.estimator_input import validated
from maxent._support import validation as v
from maxent._support.fitted import check_fitted
from maxent._support.typing import ClassWeight, RandomState
from maxent.minentropy._base import MinEntropyBase
from maxent.minentropy._features import BlockFeatures
from maxent.minentropy._instance_bags import holds_bags, read_bags
from maxent.minentropy._trust_ball import TrustBall

Init = Literal["auto", "zero", "random", "path"]
Solver = Literal["auto", "prox", "ball", "cccp", "latent_svm"] | TrustBall


class M3EClassifier(MinEntropyBase):
    """Max-margin min-entropy classifier of bags (multiple-instance learning).

    A sample is a bag of instances, and one label belongs to the whole bag: which of
    its instances the label is about is not known. The scores w_y . x_h of the
    instances make one number by a Renyi entropy, between their average (alpha = 0)
    and their maximum (alpha = inf, multiple-instance support vector machines), and
    the machine is trained for margins between these numbers.

    Parameters
    ----------
    alpha : float or array-like (n_classes,), default=inf
        Order in [0, inf]: how evidence of several instances combines. Choose it by
        validation error; objectives of different orders do not compare.
    C : float, default=100.0
        Weight of the margin errors, > 0, divided by the sum n of the sample weights:
        ``|w|^2 / 2 + C / n sum xi``.
    mode : {"auto", "blocks", "one_sided"}, default="auto"
        "blocks" gives every class its weights. "one_sided", for two classes, scores
        bags for `pos_label` against zero: bags are positive if some instance is.
        "auto" is "one_sided" for two classes.
    pos_label : label, optional
        Class of the positive bags of a one-sided model; ``classes_[1]``, the last in
        sorted order, by default.
    loss_matrix : array-like (n_classes, n_classes), optional
        Delta[true, predicted] >= 0 with a zero diagonal; ones elsewhere by default.
    init : {"auto", "zero", "random", "path"} or array-like, default="auto"
        Starts: "path" raises the order from zero to alpha, "random" draws the
        instances of `n_init` starts, "auto" does both and keeps the smallest
        objective.
    n_init : int, default=4
        Random starts.
    solver : {"auto", "prox", "ball", "cccp", "latent_svm"} or TrustBall, default="auto"
        "prox" is the prox-linear method, for finite orders; "ball" the paper's
        algorithm 2, and a :class:`TrustBall` that with other radii; "cccp" the
        concave-convex procedure, for all orders, infinite ones among finite ones
        included; "latent_svm" that of Yu and Joachims, for alpha = inf. "auto" is
        "prox" or, with an infinite order, "cccp".
    temperature : float, default=1.0
        b > 0, the type of the entropy: scores are ``F(b s) / b``.
    fit_intercept : bool, default=True
        Add a constant feature to every instance, and centre the others: fits do not
        depend on the origin of the features.
    intercept_scaling : float, default=1.0
        Value of the constant, > 0; its weight is penalised as others are, at the mean
        of the instances.
    class_weight : dict, "balanced" or None, default=None
        Factors of C by class, 1 of those that a dict leaves out.
    tol : float, default=1e-4
        Stationarity that ends learning, in units of the loss.
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
    coef_ : ndarray (1 or n_classes, n_features)
        Weights.
    intercept_ : ndarray (1 or n_classes,)
        Weights of the constant feature times its value.
    classes_ : ndarray (n_classes,)
        Labels.
    objective_ : float
        ``|w|^2 / 2 + C / n sum xi`` at the solution, a local minimum.
    objective_history_ : ndarray
        It after each accepted step; it never rises.
    stationarity_ : float
        Certificate: how far the best convex model of the objective gets below it.
    restarts_ : list of tuple (str, float, float)
        Start, objective and training error of every start.
    n_iter_, converged_, n_features_in_
        Outer steps of the best start; whether `stationarity_` is within `tol`.

    See Also
    --------
    M3EModel : Features of your own.
    renyi_score : How scores of hidden values combine.

    Notes
    -----
    A step costs O(instances x features x classes), and a margin problem of O(n
    (K - 1) d^2) with d weights, 10 to 25 times.

    References
    ----------
    Miller, Kumar, Packer, Goodman & Koller (2012), Max-margin min-entropy models.
    Andrews, Tsochantaridis & Hofmann (2003), Support vector machines for
    multiple-instance learning.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.minentropy import M3EClassifier
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.standard_normal((80, 5, 2)), np.arange(80) % 2
    >>> X[y == 1, 3] += 4.0  # one instance of every positive bag
    >>> model = M3EClassifier(C=100.0, random_state=0).fit(X, y)
    >>> print(model.score(X, y), np.bincount(model.predict_hidden(X[y == 1])))
    1.0 [ 0  0  0 40]
    """

    def __init__(
        self,
        alpha: float | ArrayLike = np.inf,
        C: float = 100.0,
        *,
        mode: Literal["auto", "blocks", "one_sided"] = "auto",
        pos_label: Any = None,
        loss_matrix: ArrayLike | None = None,
        init: Init | ArrayLike = "auto",
        n_init: int = 4,
        solver: Solver = "auto",
        temperature: float = 1.0,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        class_weight: ClassWeight = None,
        tol: float = 1e-4,
        max_iter: int = 200,
        qp_tol: float = 1e-8,
        random_state: RandomState = None,
        verbose: bool | int = False,
    ) -> None:
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
        self.intercept_scaling = intercept_scaling
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
    ) -> M3EClassifier:
        """Learn from bags.

        Parameters
        ----------
        X : array-like (n, H, p), (n, p), or list of array-like (H_i, p)
            Bags of H or H_i instances; rows of a matrix are bags of one.
        y : array-like (n,)
            Labels of two or more classes.
        sample_weight : array-like (n,), optional
            Weights >= 0 of the margin errors; 0 drops a bag.
        hidden_mask : array-like of bool (n, H), or list of (H_i,), optional
            Which instances the label may be about; None in a list for a bag without
            annotation. For finite alpha the training error is then no longer bounded
            by the slacks. Instances that are left out may have missing features: these
            belong to no output. Other masks of the negative bags of a one-sided model
            change nothing, for these have one score, but they too have to allow one.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            For a parameter outside its domain, an empty bag, features that are not
            finite, and fewer than two classes.

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
        tags.input_tags.three_d_array = True
        return tags

    def _training_features(self, X, K, hidden_mask):
        return self._features(X, K, True, hidden_mask)

    def _features(self, X, K, fit, hidden_mask=None):
        one_sided = self._one_sided(K)
        phi, bags, absent = self._bags(X, fit, hidden_mask)
        constant = 0.0
        if self.fit_intercept:
            constant = v.check_positive("intercept_scaling", self.intercept_scaling)
        features = BlockFeatures(phi, bags, K, one_sided, constant)
        if absent.any():
            features.remove(absent)
        return features

    def _bags(self, X, fit, hidden_mask):
        """Instances, where each bag begins, and which are absent.

        Rows of a matrix are bags of one.
        """
        if getattr(X, "ndim", 0) > 3:
            raise ValueError(
                f"X has shape {X.shape}; bags are (n, instances, features). Make one "
                "vector of each instance by X.reshape(*X.shape[:2], -1)."
            )
        if not holds_bags(X):
            phi = validated(self, X, dtype=np.float64, reset=fit)
            v.check_range("X", phi)
            return phi, np.arange(len(phi) + 1), np.zeros(len(phi), dtype=bool)
        phi, bags, absent = read_bags(X, hidden_mask)
        if fit:
            self.n_features_in_ = phi.shape[1]
        elif phi.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {phi.shape[1]} features, but {type(self).__name__} is "
                f"expecting {self.n_features_in_} features as input."
            )
        return phi, bags, absent

    def _weights(self, features):
        sides, p = features.sides, self.n_features_in_
        check_fitted("coef_", self.coef_, (sides, p))
        check_fitted("intercept_", self.intercept_, (sides,))
        if not self.fit_intercept:
            return self.coef_.ravel()
        scaled = self.intercept_ / self.intercept_scaling
        return np.column_stack([self.coef_, scaled]).ravel()

    def _store(self, run, b):
        super()._store(run, b)
        width = self.n_features_in_ + bool(self.fit_intercept)
        W = self.coef_.reshape(-1, width)
        self.coef_ = np.ascontiguousarray(W[:, : self.n_features_in_])
        self.intercept_ = np.zeros(len(W))
        if self.fit_intercept:
            self.intercept_ = W[:, -1] * self.intercept_scaling
