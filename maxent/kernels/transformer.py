"""From data to the product kernel of one model for each datum."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted, check_memory

from maxent._inputs.estimator_input import validated
from maxent._inputs.frames import check_names_of_lists
from maxent._support import validation as v
from maxent._support.fitted import (
    FittedState,
    check_fitted,
    check_scores,
    check_value,
    fresh_state,
)
from maxent._support.random_state import as_generator, draw_seed
from maxent._support.typing import ArrayLike, FloatArray, RandomState
from maxent.families import ExponentialFamily, Multinomial
from maxent.kernels import _document_counts, _fits
from maxent.kernels._lists import check_horizons, listed
from maxent.kernels._neighbours import bags_around, pooled, single_rows
from maxent.kernels._unit_diagonal import exponential, warn_of_diagonal
from maxent.kernels.pairs._gaussian_parts import check_powers
from maxent.kernels.pairs._length_law import LengthLaw
from maxent.kernels.pairs._routes import check_like
from maxent.kernels.product import Method, Problem

# rows by which the kernel of more data than that is judged before it is computed
_FEW, _MANY = 16, 200
# of parameters that are arrays elsewhere
_ONE = "must be {}: search a grid over several, or call product_kernel with the models."


class ProductKernel(
    FittedState, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """Kernel matrix of data through one generative model for each datum.

    `fit` fits a model to each training datum; `transform` fits one to each new datum
    and returns the product kernel between those and the training models. A machine with
    ``kernel="precomputed"`` comes next in a pipeline. A grid search fits all models
    again at every point of the grid, also where only `rho`, `horizon` or the machine
    differ, unless `memory` is given.

    Parameters
    ----------
    model : str, class or None, default="multinomial"
        What is fitted to a datum:

        - "multinomial": rows of counts, dense or sparse, as draws of words in order.
          Nothing of the size samples x words is made dense;
        - "CategoricalHMM", "MarkovChain": sequences of symbols; "GaussianHMM",
          "LinearDynamicalSystem", "SwitchingLDS", "FactorialHMM": series of vectors;
        - "Mixture": bags, arrays (n_rows, d);
        - the name of a family, such as "Gaussian": bags, or single rows of an array
          (n_samples, d). Families of numbers (Bernoulli, Poisson ...) take the columns
          as independent coordinates;
        - None: data are models already, or a batch of a family.
    rho : float, default=0.5
        Power > 0; one number, as for `horizon`.
    horizon : int or "mean", default="mean"
        Of models of sequences: T >= 0, kernels compare sequences of T + 1 observations;
        "mean" takes the mean length of the training sequences, which is too long for
        sequences of hundreds of steps: try 5 to 20. One number: search a grid for
        several, or call :func:`product_kernel` with the models.
    estimate : {"ml", "map", "predictive"}, default="map"
        "ml" is maximum likelihood, without any prior, which SwitchingLDS and
        FactorialHMM cannot do without. "map" takes the prior in
        `model_params` or the default one of the model's fit; families and multinomials
        have none by default. "predictive" is the law of the next observation where it
        is in the family (multinomial, Categorical, Multinomial, Bernoulli,
        MarkovChain): pseudo-counts, 1 by default.
    neighbours : int, optional
        Fit each model to its row and the rows of its nearest training data, for single
        rows only. Counts are compared by their square roots of proportions.
    normalize : bool, default=True
        Divide by the square roots of the kernels of each model with itself.
    method : str, default="auto"
        As for :func:`product_kernel`.
    length_law : {"geometric", "poisson"} or array-like, optional
        As for :func:`product_kernel`.
    model_params : dict, optional
        Arguments of the model's ``fit``, such as ``{"n_states": 3, "alphabet":
        "ACGT"}``. Of "multinomial": "smoothing", pseudo-counts, and "total", draws.
        Fits of GaussianHMM take ``tol=1e-5``, and of LinearDynamicalSystem 1e-4,
        unless it is given.
    n_paths, n_samples : int
        As for :func:`product_kernel`.
    memory : str or joblib.Memory, optional
        Folder in which fitted models are kept, as in scikit-learn's Pipeline. A grid
        search over `rho`, `horizon` and all that does not change the models then fits
        them once for each fold. With ``random_state=None`` random starts are new ones
        in every fit, and their models are not found again.
    random_state : int, Generator, RandomState or None, default=0
        Of the fits and of draws: gives `seed_`. All data are fitted with that seed, so
        that no model depends on the data beside it.
    n_jobs : int, optional
        Of the fits and of the kernel.

    Attributes
    ----------
    models_ : list of models, batch of a family, or None
        Of the training data; None for "multinomial".
    counts_ : csr_array or None
        Training counts, with those of the neighbours; of "multinomial" only.
    log_self_ : ndarray (n,)
        Logarithms of the kernel of each training model with itself.
    horizon_ : int or None
        T.
    rows_ : ndarray, csr_array or None
        Training rows, if there are `neighbours`.
    options_ : dict
        Arguments of all fits.
    seed_ : int
        Of all fits and draws.
    row_shape_ : tuple of int or None
        Shape of one observation of the data; None of counts and of models.
    n_models_ : int
        Number of training data.
    n_features_in_, feature_names_in_
        Of counts, and of training data in data frames; later ones must have the same
        columns.

    See Also
    --------
    product_kernel : The kernel between models.

    Notes
    -----
    Row i of ``transform(X)`` is ``transform(X[i : i + 1])``, but for rounding.
    Sequences and bags come as a list of one for each model; an array (n, T) or
    (n, T, d) is n sequences of T steps.

    References
    ----------
    Jebara, Kondor & Howard (2004), Probability product kernels, sections 2.2 and 8.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from maxent import MEDClassifier
    >>> from maxent.kernels import ProductKernel
    >>> X = [[4, 1, 0], [3, 2, 0], [5, 0, 1], [0, 2, 4], [1, 1, 5], [0, 1, 3]]
    >>> y = [0, 0, 0, 1, 1, 1]
    >>> machine = make_pipeline(ProductKernel(), MEDClassifier(kernel="precomputed"))
    >>> machine.fit(X, y).predict([[2, 1, 0], [0, 1, 2]])
    array([0, 1])
    """

    log_self_: FloatArray
    models_: Any
    horizon_: int | None
    seed_: int
    n_models_: int

    def __init__(
        self,
        model: str | type[Any] | None = "multinomial",
        *,
        rho: float = 0.5,
        horizon: int | Literal["mean"] = "mean",
        estimate: Literal["ml", "map", "predictive"] = "map",
        neighbours: int | None = None,
        normalize: bool = True,
        method: Method = "auto",
        length_law: Literal["geometric", "poisson"] | ArrayLike | None = None,
        model_params: dict[str, Any] | None = None,
        n_paths: int = 8,
        n_samples: int = 1000,
        memory: Any = None,
        random_state: RandomState = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.model = model
        self.rho = rho
        self.horizon = horizon
        self.estimate = estimate
        self.neighbours = neighbours
        self.normalize = normalize
        self.method = method
        self.length_law = length_law
        self.model_params = model_params
        self.n_paths = n_paths
        self.n_samples = n_samples
        self.memory = memory
        self.random_state = random_state
        self.n_jobs = n_jobs

    # -- estimator -------------------------------------------------------------------
    @fresh_state
    def fit(self, X: Any, y: object = None) -> Self:
        """Fit a model to each training datum.

        Parameters
        ----------
        X : list, array or CSR
            Data of the kind that `model` takes, one entry for each model; or the path
            (``pathlib.Path``) of a file of sequences of symbols.
        y : ignored

        Returns
        -------
        self
        """
        self._check_names(X, reset=True)
        self._fit(X)
        return self

    def fit_transform(self, X: Any, y: object = None, **params: Any) -> FloatArray:
        """Fit, and the kernel matrix of the training data.

        Parameters
        ----------
        X : list, array or CSR
        y : ignored
        **params : ignored

        Returns
        -------
        ndarray (n_samples, n_samples)
            Exactly symmetric.

        Warns
        -----
        UserWarning
            If the normalised kernel of sequences is nearly diagonal: of ten and more,
            half have no other with a kernel of 0.01. Of more than 200, 16 are looked
            at before all others are compared.
        """
        self.fit(X, y)
        if self._counts_only():
            return self._counts_kernel(None)
        problem = self._problem(self.models_, None)
        own = self.log_self_[:, None, None]
        is_checked = self.normalize and self.length_law is None and self.horizon_
        warned = is_checked and self.n_models_ > _MANY and self._few_are_alone(own)
        K = exponential(problem.log_kernel(self.normalize, (own, own)))
        if is_checked and not warned:
            warn_of_diagonal(K, self.horizon_)
        return K

    def _few_are_alone(self, own):
        """Warn of a nearly diagonal kernel by a few rows, before all are computed."""
        rows = np.linspace(0, self.n_models_ - 1, _FEW).astype(np.intp)
        some = [self.models_[i] for i in rows]
        log_K = self._problem(some, self.models_).log_kernel(True, (own[rows], own))
        return warn_of_diagonal(exponential(log_K), self.horizon_, rows)

    def transform(self, X: Any) -> FloatArray:
        """Fit a model to each datum, and its kernel with the training models.

        Parameters
        ----------
        X : list, array or CSR

        Returns
        -------
        ndarray (n_samples, n_models)

        Warns
        -----
        UserWarning
            Of "multinomial", without pseudo-counts: rows of zeros, which any law would
            fit, are taken for uniform over the words, the limit of small pseudo-counts.
            `fit` refuses them, and so does `transform` with `neighbours`.
        """
        check_is_fitted(self)
        self._check_names(X, reset=False)
        check_fitted("log_self_", self.log_self_, (self.n_models_,), once=True)
        if self._counts_only():
            check_fitted(
                "counts_", self.counts_, self.counts_.shape, once=True, sparse=True
            )
            return self._checked_values(self._counts_kernel(X))
        for model in self._trained():
            check_value("models_", model)
        if self.model is None:
            models = listed("X", X)
            check_like("X", models, self.models_, self.method)
        elif self.neighbours is not None:
            X = single_rows(X, self.model, self.neighbours)
            models = self._models(bags_around(self.rows_, X, self.neighbours))
        else:
            cls = _fits.model_class(self.model)
            like = getattr(self, "row_shape_", None)  # of old files: unknown
            models = self._models(_fits.read_data(cls, X, self.options_, like))
        problem = self._problem(models, self.models_)
        own = None
        if self.normalize:
            own = problem.log_self(), self.log_self_[:, None, None]
        return self._checked_values(
            exponential(problem.log_kernel(self.normalize, own))
        )

    def _checked_values(self, K):
        """Normalised kernels do not overflow, unless the state was changed."""
        return check_scores(K, None) if self.normalize else K

    @property
    def _n_features_out(self) -> int:
        check_fitted("log_self_", self.log_self_, (self.n_models_,), once=True)
        return self.n_models_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._counts_only()
        tags.input_tags.two_d_array = self._counts_only()
        tags.input_tags.positive_only = self._counts_only()
        return tags

    # -- fits ------------------------------------------------------------------------
    def _check_names(self, X, reset):
        """Names of the columns of data frames: those of training, in their order."""
        if hasattr(X, "columns"):
            validated(self, X, skip_check_array=True, reset=reset)
        else:
            check_names_of_lists(self, X, reset=reset)

    def _fit(self, X):
        rho = check_powers(self.rho)
        if rho.ndim:
            raise ValueError(f"rho={v.shown(self.rho)} {_ONE.format('a number > 0')}")
        if self.length_law is not None:
            LengthLaw(self.length_law)
        if self.neighbours is not None:
            v.check_count("neighbours", self.neighbours)
        self.seed_ = draw_seed(as_generator(self.random_state))
        self.models_ = self.counts_ = self.rows_ = self.horizon_ = None
        self.row_shape_ = None
        if self._counts_only():
            self._fit_counts(X)
            return
        cls = None if self.model is None else _fits.model_class(self.model)
        X = self._training_data(cls, X)
        self.horizon_ = self._horizon(cls, X)
        self.models_ = self._models(X)
        self.n_models_ = len(self.models_)
        problem = self._problem(self.models_, None)
        if isinstance(problem.P, ExponentialFamily):
            self.models_ = problem.P
        self.log_self_ = problem.log_self()[:, 0, 0]

    def _training_data(self, cls, X):
        """The data as the fits take them, and what `transform` must know of them."""
        if self.neighbours is not None:
            self.rows_ = single_rows(X, self.model, self.neighbours)
        self.options_ = {}
        if cls is None:
            return listed("X", X)
        params = dict(self.model_params or {})
        _fits.check_params(cls, params)
        self.options_ = _fits.fit_options(cls, self.estimate, params)
        if self.neighbours is not None:
            X = bags_around(self.rows_, None, self.neighbours)
        else:
            X = _fits.read_data(cls, X, self.options_)
        self.options_ = _fits.with_symbols(cls, X, self.options_)
        self.row_shape_ = _fits.shape_of_rows(X)
        return X

    def _horizon(self, cls, X):
        """T; None of models that are not of sequences."""
        sequences = cls is not None and _fits.kind_of_data(cls) != "rows"
        if isinstance(self.horizon, str):
            v.check_choice("horizon", self.horizon, ("mean",))
            if not sequences:
                return None
            return round(float(X.lengths.mean())) - 1  # none is empty
        if np.ndim(self.horizon):
            rule = _ONE.format("an integer >= 0 or 'mean'")
            raise ValueError(f"horizon={v.shown(self.horizon)} {rule}")
        if sequences or cls is None:
            if self.horizon is not None:
                check_horizons(self.horizon)
            return self.horizon
        raise ValueError(
            f"horizon={v.shown(self.horizon)} has no meaning for model="
            f"{v.shown(self.model)}; leave it 'mean'."
        )

    def _models(self, X):
        if self.model is None:
            return X
        cls = _fits.model_class(self.model)
        fit = check_memory(self.memory).cache(_fits.fit_models, ignore=["n_jobs"])
        seed = self.seed_ if getattr(cls, "_random", False) else None
        return fit(cls, X, self.options_, seed, n_jobs=self.n_jobs)

    def _trained(self):
        """The training models: a batch of a family counts as one."""
        if isinstance(self.models_, (list, tuple)):
            return self.models_
        return [self.models_]

    # -- kernels ---------------------------------------------------------------------
    def _problem(self, P, Q):
        options = {
            "n_paths": v.check_count("n_paths", self.n_paths),
            "n_samples": v.check_count("n_samples", self.n_samples),
            "n_jobs": self.n_jobs,
            "seed": self.seed_,
            # the training models keep what is drawn for their list
            "sides": (0, 0) if Q is None else (1, 0),
            "named": {"P": "X", "Q": "models_"},
        }
        law = self.length_law
        return Problem(P, Q, self.rho, self.horizon_, self.method, law, options)

    # -- counts ----------------------------------------------------------------------
    def _counts_only(self):
        return isinstance(self.model, str) and self.model == "multinomial"

    def _fit_counts(self, X):
        v.check_choice("method for 'multinomial'", self.method, ("auto", "exact"))
        if self.horizon != "mean":
            raise ValueError(
                f"horizon={v.shown(self.horizon)} has no meaning for 'multinomial', "
                "whose length is model_params={'total': ...}."
            )
        params = dict(self.model_params or {})
        self.options_ = _fits.fit_options(Multinomial, self.estimate, params)
        unknown = set(self.options_) - {"smoothing", "total"}
        if unknown:
            raise ValueError(
                f"model_params has {min(unknown)!r}, which 'multinomial' does not "
                "know; use 'smoothing' and 'total'."
            )
        v.check_count("total", self.options_.get("total", 1))
        counts, c = _document_counts.checked_counts(
            X, self.options_.get("smoothing", 0.0)
        )
        _document_counts.refuse_empty(counts, c)
        if self.neighbours is not None:
            self.rows_ = counts
            counts = pooled(counts, None, self.neighbours)
        self.counts_, self.n_models_ = counts, counts.shape[0]
        self.n_features_in_ = counts.shape[1]
        P = self._proportions(counts)
        own = np.log(P.own)
        law, total = self._law(), self.options_.get("total", 1)
        if law is not None:
            law.check_totals("X", own[:, None], total, np.array([self.rho]))
        self.log_self_ = own

    def _law(self):
        return None if self.length_law is None else LengthLaw(self.length_law)

    def _proportions(self, counts):
        c = _document_counts.checked_counts(
            counts, self.options_.get("smoothing", 0.0)
        )[1]
        return _document_counts.proportions(counts, c, float(self.rho))

    def _counts_kernel(self, X):
        P, place = self._proportions(self.counts_), None
        if X is None:
            Q, own = None, (self.log_self_, self.log_self_)
        else:
            smoothing = self.options_.get("smoothing", 0.0)
            new, c = _document_counts.checked_counts(X, smoothing, self.n_features_in_)
            if self.neighbours is None:
                new, place = _document_counts.with_uniform(new, c)
            else:  # nothing is near to an empty document
                _document_counts.refuse_empty(new, c)
                new = pooled(self.rows_, new, self.neighbours)
            P, Q = self._proportions(new), P
            own = np.log(P.own), self.log_self_
        K = _document_counts.kernel_of(
            P,
            Q,
            total=self.options_.get("total", 1),
            law=self._law(),
            normalize=self.normalize,
            own=own,
            n_jobs=self.n_jobs,
        )
        return K if place is None else K[place]
