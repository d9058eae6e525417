"""Choosing C and gamma of kernel machines by cross-validation.

Source of the form: scikit-learn's GridSearchCV and LogisticRegressionCV.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import get_tags, indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from maxent._partitions.partition_checks import is_partitioned
from maxent._support import validation as v
from maxent._support.fitted import FittedState, fresh_state
from maxent._support.progress import with_progress
from maxent._support.threads import effective_threads, in_threads
from maxent._support.typing import ArrayLike, FloatArray, MatrixLike
from maxent.discrimination.classifier import MEDClassifier
from maxent.discrimination.duals._along_c import AlongC
from maxent.discrimination.grams.kernel_parameters import resolve_gamma
from maxent.discrimination.regressor import MEDRegressor

_C_RANGE = -2.0, 3.0  # decimal exponents of C, of a number of values
_GAMMA_RANGE = -2.0, 2.0  # those of gamma, in units of "scale"


def _has(name):
    return available_if(lambda self: hasattr(self._like(), name))


class KernelSearch(FittedState):
    """What the searches of both kinds of machines share."""

    _kind: Any
    best_estimator_: Any
    best_params_: dict[str, float]
    best_score_: float
    best_index_: int
    cv_results_: dict[str, Any]
    n_splits_: int

    def __init__(
        self,
        estimator: Any = None,
        *,
        Cs: int | ArrayLike = 10,
        gammas: int | ArrayLike = 10,
        cv: Any = None,
        scoring: Any = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.estimator = estimator
        self.Cs = Cs
        self.gammas = gammas
        self.cv = cv
        self.scoring = scoring
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self):
        tags, own = super().__sklearn_tags__(), get_tags(self._machine())
        tags.input_tags.sparse = own.input_tags.sparse
        tags.input_tags.pairwise = own.input_tags.pairwise
        return tags

    def _machine(self):
        """The machine whose C and gamma are chosen."""
        return self._kind() if self.estimator is None else self.estimator

    def _like(self):
        """The best machine, or before the fit one like it."""
        return vars(self).get("best_estimator_", self._machine())

    # -- fit ---------------------------------------------------------------------------
    @fresh_state
    @with_progress
    def fit(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Any:
        """Fit all candidates to all splits, and the best one to all rows.

        Parameters
        ----------
        X : array-like or CSR (n_samples, n_features), or (n_samples, n_samples) \
for kernel="precomputed"
            Features, or the kernel matrix.
        y : array-like (n_samples,)
            Labels, or targets.
        sample_weight : array-like (n_samples,), optional
            Weights of the rows, in the fits and in the default score.

        Returns
        -------
        self : object
            The fitted search.

        Raises
        ------
        TypeError
            For an estimator of another kind.
        ValueError
            For a parameter outside its domain, and for data that the machine refuses.

        Warns
        -----
        ConvergenceWarning
            If the best candidate, or its fit to all rows, does not meet its tolerance.
        """
        machine = self._checked_machine()
        if is_partitioned(X):
            raise ValueError(
                f"{type(self).__name__} needs rows in memory; fit {self._kind.__name__}"
                " to rows in blocks, or convert a sample of them to an array."
            )
        given = X, y, sample_weight = indexable(X, y, sample_weight)
        X, y = self._checked_rows(machine, X, y)
        weight = v.check_weights(sample_weight, X.shape[0])
        unit = self._unit_of_C(y)
        C = _values("Cs", self.Cs, _C_RANGE, unit)
        gamma = self._values_of_gamma(machine, X)
        cv = check_cv(self.cv, y, classifier=self._kind is MEDClassifier)
        splits = list(cv.split(X, y))
        scorer = self._scorer(machine)
        scores = np.empty((len(C), len(gamma), len(splits)))
        converged = np.empty(scores.shape, dtype=bool)
        seconds = np.empty(scores.shape)

        def work(item, thread, stop):
            g, k = divmod(item, len(splits))
            rows = _Split(X, y, weight, *splits[k], machine, scorer)
            for c, found in rows.scores(C, gamma[g]):
                scores[c, g, k], converged[c, g, k], seconds[c, g, k] = found
                if stop.is_set():
                    return
            best = f"{scores[:, g, k].max():.4g}"
            self._progress.mention(
                f"gamma {gamma[g]:.3g}, split {k}: best score {best}"
            )

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.filterwarnings("ignore", "MEDRegressor: all predictions")
            threads = effective_threads(self.n_jobs)
            in_threads(work, len(gamma) * len(splits), threads)
        self._keep(C, gamma, scores, converged, seconds)
        best = clone(machine).set_params(**self.best_params_)
        self.best_estimator_ = best.fit(*given)
        self._copy_fitted(best)
        if best.converged_ and not self.cv_results_["converged"][self.best_index_]:
            warnings.warn(
                f"{type(self).__name__}: {self.best_params_} has the best score, and "
                "its fits to some splits did not meet their tolerance; raise max_iter "
                "or tol of the estimator, or lower the largest C.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self

    def _checked_machine(self):
        machine = self._machine()
        if type(machine) is not self._kind:
            raise TypeError(
                f"estimator={machine!r} must be a {self._kind.__name__}, of which "
                "C and gamma are chosen; others go to scikit-learn's GridSearchCV."
            )
        v.check_bool("verbose", bool(self.verbose))
        v.check_jobs(self.n_jobs)
        machine = clone(machine)
        machine.n_jobs = 1
        machine._check_machine_parameters()
        return machine

    def _scorer(self, machine):
        """The function that scores a machine on rows; None for its own score."""
        if self.scoring is None:
            return None
        name = type(self).__name__
        if not (isinstance(self.scoring, str) or callable(self.scoring)):
            raise TypeError(
                f"scoring={v.shown(self.scoring)} must be one name of scikit-learn's "
                f"scorers, or a function; {name} chooses by one score."
            )
        scorer = check_scoring(machine, self.scoring)
        needed = getattr(scorer, "_response_method", "predict")
        if needed == "predict_proba" and not hasattr(machine, needed):
            raise ValueError(
                f"scoring={v.shown(self.scoring)} needs probabilities, which the "
                f"machine has with the logistic margin only; use "
                f"{name}(MEDClassifier(margin='logistic'))."
            )
        return scorer

    def _checked_rows(self, machine, X, y):
        """Arrays of rows and labels, or targets, as the machine would take them."""
        numbers = self._kind is MEDRegressor
        X, y = machine._validated(X, y, **({"y_numeric": True} if numbers else {}))
        return X, y

    def _copy_fitted(self, best):
        for name in ("n_features_in_", "feature_names_in_", "classes_"):
            if hasattr(best, name):
                setattr(self, name, getattr(best, name))

    def _unit_of_C(self, y):
        """Unit in which default values of C are counted."""
        return 1.0

    def _values_of_gamma(self, machine, X):
        """Values of gamma; the machine's own alone for a kernel without one."""
        if machine._has_kernel("linear") or machine._has_kernel("precomputed"):
            return np.array([np.nan])
        if callable(machine.kernel):
            return np.array([np.nan])
        unit = resolve_gamma("scale", X)
        return _values("gammas", self.gammas, _GAMMA_RANGE, unit)

    def _keep(self, C, gamma, scores, converged, seconds):
        """Set the results in scikit-learn's form, and which candidate is best."""
        n = scores.shape[2]
        flat = scores.reshape(-1, n)
        if np.isnan(flat).any():
            raise ValueError(
                f"scoring={self.scoring!r} gave NaN for some splits; use splits that "
                "have every class, as StratifiedKFold makes, or another scoring."
            )
        mean = flat.mean(axis=1)
        params = [self._params(c, g) for c in C for g in gamma]
        # of equal scores the least C, then the least gamma
        order = np.lexsort((np.tile(gamma, len(C)), np.repeat(C, len(gamma)), -mean))
        self.best_index_ = int(order[0])
        self.best_params_ = params[self.best_index_]
        self.best_score_, self.n_splits_ = float(mean[self.best_index_]), n
        results = {"params": params}
        for name in params[0]:
            results[f"param_{name}"] = np.array([one[name] for one in params])
        for k in range(n):
            results[f"split{k}_test_score"] = flat[:, k]
        results["mean_test_score"], results["std_test_score"] = mean, flat.std(axis=1)
        ranks = np.unique(-mean, return_inverse=True)[1]
        first = np.append(0, np.cumsum(np.bincount(ranks)))
        results["rank_test_score"] = (1 + first[ranks]).astype(np.int32)
        results["mean_fit_time"] = seconds.reshape(-1, n).mean(axis=1)
        results["converged"] = converged.reshape(-1, n).all(axis=1)
        self.cv_results_ = results

    @staticmethod
    def _params(C, gamma):
        params = {"C": float(C)}
        return params if np.isnan(gamma) else params | {"gamma": float(gamma)}

    # -- what the best machine says ----------------------------------------------------
    def predict(self, X: MatrixLike) -> NDArray[Any]:
        """Predictions of the best machine.

        Parameters
        ----------
        X : array-like or CSR (n, n_features), or (n, n_samples_fit) for "precomputed"

        Returns
        -------
        ndarray (n,)
        """
        check_is_fitted(self)
        return self.best_estimator_.predict(X)

    def score(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> float:
        """Score of the best machine on other rows, by `scoring`.

        Parameters
        ----------
        X, y
            As for :meth:`fit`.
        sample_weight : array-like (n,), optional
            For the default score.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        if self.scoring is None:
            return float(self.best_estimator_.score(X, y, sample_weight))
        return float(check_scoring(self.best_estimator_, self.scoring)(self, X, y))


class _Split:
    """The training and the test rows of a split, of which several C are tried."""

    def __init__(self, X, y, weight, train, test, machine, scorer):
        self.machine, self.scorer = machine, scorer
        whole = machine._has_kernel("precomputed")
        self.X = X[np.ix_(train, train)] if whole else X[train]
        self.X_test = X[np.ix_(test, train)] if whole else X[test]
        self.y, self.y_test = y[train], y[test]
        self.weight = self.weight_test = None
        if weight is not None:
            self.weight, self.weight_test = weight[train], weight[test]

    def scores(self, C, gamma):
        """Yield the places of C from the least on, with score, convergence, seconds."""
        import time

        along = AlongC(self.machine.cache_size)
        for c in np.argsort(C, kind="stable"):
            model = clone(self.machine)
            model.set_params(**KernelSearch._params(C[c], gamma))
            model._along = along
            start = time.perf_counter()
            model.fit(self.X, self.y, sample_weight=self.weight)
            seconds = time.perf_counter() - start
            yield c, (self._score(model), model.converged_, seconds)

    def _score(self, model):
        if self.scorer is not None:
            return self.scorer(model, self.X_test, self.y_test)
        return model.score(self.X_test, self.y_test, self.weight_test)


def _values(name, given, decades, unit):
    """The candidates that `Cs` or `gammas` means."""
    if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
        v.check_count(name, given)
        if given == 1:
            decades = np.mean(decades), np.mean(decades)
        return unit * np.logspace(*decades, int(given))
    values = v.as_doubles(name, given)
    if values.ndim != 1 or not len(values) or not (values > 0).all():
        raise ValueError(
            f"{name}={v.shown(given)} must be a number of values or a list of numbers "
            "> 0, such as [0.1, 1, 10]."
        )
    if not np.isfinite(values).all():
        raise ValueError(f"{name}={v.shown(given)} must be finite.")
    return values


class MEDClassifierCV(KernelSearch, ClassifierMixin, BaseEstimator):
    """MEDClassifier with C and gamma chosen by cross-validation.

    Every candidate is fitted to every split, and the best one to all rows, as by
    :class:`~sklearn.model_selection.GridSearchCV`, with the same scores up to the
    tolerance of the fits. Values of gamma are relative to ``gamma="scale"`` unless they
    are given, and threads share out the work. Of two classes the fits of a split at one
    gamma share a kernel matrix, and each begins where that of the C before has ended.

    Parameters
    ----------
    estimator : MEDClassifier, optional
        The machine; its C and gamma do not matter. ``MEDClassifier()`` by default.
    Cs : int or array-like, default=10
        Values of C > 0, or a number of them from .01 to 1000, evenly spaced in their
        logarithm; of one value the middle.
    gammas : int or array-like, default=10
        Values of gamma > 0, or a number of them from .01 to 100 times
        ``gamma="scale"`` of all rows. Not used for kernels without gamma.
    cv : int, splitter or iterable, optional
        As for GridSearchCV: None is five splits, stratified by class. For splits by
        groups give ``list(splitter.split(X, y, groups))``.
    scoring : str or callable, optional
        One score, as for GridSearchCV; the accuracy by default. Those of probabilities
        need a machine with ``margin="logistic"``.
    n_jobs : int, optional
        Threads, which share out splits and values of gamma. Results do not depend on
        it.
    verbose : bool or int, default=False
        Print progress.

    Attributes
    ----------
    best_estimator_ : MEDClassifier
        The best candidate, fitted to all rows.
    best_params_ : dict
        Its C, and gamma if the kernel has one.
    best_score_ : float
        Its mean score over the splits; of equal ones the smallest C wins, then the
        smallest gamma.
    best_index_ : int
        Its place in `cv_results_`.
    cv_results_ : dict of arrays
        One entry per candidate, as from GridSearchCV: `params`, `param_C`,
        `param_gamma`, `split0_test_score`, ..., `mean_test_score`, `std_test_score`,
        `rank_test_score`, `mean_fit_time` (seconds), and `converged`, whether the fits
        to all splits met their tolerance.
    n_splits_ : int
        Number of splits.
    classes_ : ndarray (n_classes,)
        Labels.
    n_features_in_, feature_names_in_
        As usual.

    See Also
    --------
    MEDClassifier : The machine.
    maxent.discrimination.dual_path : Solutions for many C of one kernel matrix.

    Notes
    -----
    Three and more classes, linear kernels and approximations share no matrix; each
    candidate is a fit of its own there. A matrix that does not fit in the estimator's
    `cache_size` is not shared either. Each thread holds one.

    The search takes the columns as they are: scale them before. A scaler in a pipeline
    around the search sees all training rows, which changes scores by little; where that
    matters, put the pipeline into GridSearchCV.

    Examples
    --------
    >>> from sklearn.preprocessing import StandardScaler
    >>> from maxent import MEDClassifierCV
    >>> from maxent.datasets import load_crabs
    >>> X, y = load_crabs(return_X_y=True)
    >>> X = StandardScaler().fit_transform(X)
    >>> search = MEDClassifierCV(Cs=[1, 10, 100], gammas=3).fit(X, y)
    >>> search.best_params_["C"], round(search.best_score_, 3)
    (100.0, 0.955)
    """

    classes_: NDArray[Any]
    _kind = MEDClassifier

    @_has("decision_function")
    def decision_function(self, X: MatrixLike) -> FloatArray:
        """Decision values of the best machine.

        Parameters
        ----------
        X : array-like or CSR (n, n_features), or (n, n_samples_fit) for "precomputed"

        Returns
        -------
        ndarray (n,) or (n, n_classes)
            As from :meth:`MEDClassifier.decision_function`.
        """
        check_is_fitted(self)
        return self.best_estimator_.decision_function(X)

    @_has("predict_proba")
    def predict_proba(self, X: MatrixLike) -> FloatArray:
        """Class probabilities, for ``margin="logistic"``.

        Parameters
        ----------
        X : array-like or CSR (n, n_features), or (n, n_samples_fit) for "precomputed"

        Returns
        -------
        ndarray (n, n_classes)
            As from :meth:`MEDClassifier.predict_proba`.
        """
        check_is_fitted(self)
        return self.best_estimator_.predict_proba(X)

    @_has("predict_log_proba")
    def predict_log_proba(self, X: MatrixLike) -> FloatArray:
        """Logs of the class probabilities, for ``margin="logistic"``.

        Parameters
        ----------
        X : array-like or CSR (n, n_features), or (n, n_samples_fit) for "precomputed"

        Returns
        -------
        ndarray (n, n_classes)
            As from :meth:`MEDClassifier.predict_log_proba`.
        """
        check_is_fitted(self)
        return self.best_estimator_.predict_log_proba(X)


class MEDRegressorCV(KernelSearch, RegressorMixin, BaseEstimator):
    """MEDRegressor with C and gamma chosen by cross-validation.

    As :class:`MEDClassifierCV`, for targets.

    Parameters
    ----------
    estimator : MEDRegressor, optional
        The machine; its C and gamma do not matter. ``MEDRegressor()`` by default.
    Cs : int or array-like, default=10
        Values of C > 0, or a number of them from .01 to 1000 standard deviations of the
        targets, in whose units C is.
    gammas : int or array-like, default=10
        As for :class:`MEDClassifierCV`.
    cv : int, splitter or iterable, optional
        As for GridSearchCV: None is five splits in the order of the rows.
    scoring : str or callable, optional
        As for GridSearchCV; the coefficient of determination by default.
    n_jobs : int, optional
        Threads, which share out splits and values of gamma. Results do not depend on
        it.
    verbose : bool or int, default=False
        Print progress.

    Attributes
    ----------
    best_estimator_ : MEDRegressor
        The best candidate, fitted to all rows.
    best_params_, best_score_, best_index_, cv_results_, n_splits_
        As for :class:`MEDClassifierCV`.
    n_features_in_, feature_names_in_
        As usual.

    See Also
    --------
    MEDRegressor : The machine.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent import MEDRegressorCV
    >>> from sklearn.model_selection import KFold
    >>> X = np.linspace(-3, 3, 60)[:, None]
    >>> cv = KFold(5, shuffle=True, random_state=0)
    >>> search = MEDRegressorCV(cv=cv)
    >>> bool(search.fit(X, np.sin(2 * X[:, 0])).best_score_ > 0.95)
    True
    """

    _kind = MEDRegressor

    def _unit_of_C(self, y):
        return float(np.std(y)) or 1.0
