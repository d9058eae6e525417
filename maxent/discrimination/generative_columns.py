"""Generative models of tables with columns of several kinds, trained for margins."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from maxent._inputs.categories import (
    encode_categories,
    learn_categories,
    validate_categories,
)
from maxent._inputs.plain_categories import missing_values
from maxent._support import validation as v
from maxent._support.typing import (
    BiasOfClasses,
    ClassWeight,
    FloatArray,
    Likelihood,
    MarginName,
    NDArray,
    Unknown,
)
from maxent._support.validation import called, names_of_columns, user_stacklevel
from maxent.discrimination._column_models import (
    Group,
    groups_of,
    prior_of_columns,
    without_constant,
)
from maxent.discrimination._generative_base import GenerativeClassifier
from maxent.discrimination.margins.base import MarginPrior
from maxent.families.priors.column_priors import ColumnError, ProductPrior


class MEDGenerativeClassifier(GenerativeClassifier):
    """Tables of numbers, counts, shares, angles and texts, by one model per class.

    Each class has a product of distributions, one for every column or group of columns,
    and a conjugate prior over their parameters; the classifier compares the expected
    log-likelihoods. Training moves the distributions over the parameters no farther
    from the Bayes posteriors than the margins require, and the problem is convex.

    Parameters
    ----------
    columns : dict, optional
        ``{column: family}``: columns by name or number, or tuples of them, with a class
        of :mod:`maxent.families`, a pair (class, options), or a conjugate prior.

        - Gaussian: the columns together, with covariances; ``prior`` is "weak" (the
          default: means and variances of all rows, worth one row), "improper" or a
          NormalInverseWishart. DiagonalGaussian: each column alone.
        - Poisson, NegativeBinomial (``r``), Geometric, Bernoulli, Exponential, Gamma,
          Beta: each column alone, with a prior worth ``count`` (1) rows whose
          statistics are the means of all rows.
        - VonMisesFisher: one column of angles in radians, or the columns of a unit
          vector; ``count``.
        - Categorical: each column alone, or a Bayes net by ``parents`` of the columns
          of the group; ``ess``, the equivalent sample size (1).

        Columns that are not named are not read, nor, with a warning, columns of numbers
        that are constant. None: numbers are Gaussian, together
        where no value is missing and else alone; texts and columns of two values are
        categories; constant columns, and texts of which most rows have their own, are
        not read.
    class_columns : dict, optional
        ``{label: columns}`` of classes with a model of their own, of the same columns.
    C : float, default=3.0
        Rate of the margin prior, > 0, as for :class:`MEDGaussianClassifier`.
    margin, level, percentile, tempering, bias, class_weight, likelihood
        As for :class:`MEDGaussianClassifier`.
    handle_unknown : {"ignore", "error"}, default="ignore"
        Categories met at prediction only: as missing, or refused.
    tol, max_iter, verbose
        As for :class:`MEDGaussianClassifier`.

    Attributes
    ----------
    posteriors_ : list of ProductPrior
        Distribution over the parameters of every class.
    categories_ : list of ndarray
        Categories of every column, empty of those that have none.
    loo_bound_ : float
        As for :class:`MEDGaussianClassifier`, where all priors are given.
    classes_, intercept_, support_, dual_coef_, level_, duality_gap_, objective_, \
objective_history_, n_iter_, converged_, n_features_in_
        As for :class:`MEDGaussianClassifier`.

    See Also
    --------
    MEDGaussianClassifier : Numbers alone, with covariances.
    MEDBayesNetClassifier : Categories alone.
    maxent.models.Mixture : Such tables without labels.

    Notes
    -----
    A value that is missing (NaN, None) leaves its column, or its group of columns, out
    of the likelihood of its row: for single columns that is exact.

    References
    ----------
    Jaakkola, Meila & Jebara (1999), footnote 1 and section 3.6.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from maxent import MEDGenerativeClassifier
    >>> from maxent.families import Categorical, Gaussian, Poisson
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 200)
    >>> table = pd.DataFrame({"visits": rng.poisson(2 + 3 * y),
    ...                       "height": rng.normal(170 + 6 * y, 7)})
    >>> table["ward"] = np.where(rng.random(200) < 0.3 + 0.3 * y, "east", "west")
    >>> model = MEDGenerativeClassifier(
    ...     {"visits": Poisson, "height": Gaussian, "ward": Categorical}
    ... ).fit(table, y)
    >>> model.converged_, model.score(table, y) > 0.8
    (True, True)
    """

    categories_: list[NDArray[Any]]
    missing = None  # values of a category are not made of missing ones

    def __init__(
        self,
        columns: Mapping[Any, Any] | None = None,
        *,
        class_columns: Mapping[Any, Mapping[Any, Any]] | None = None,
        C: float = 3.0,
        margin: MarginName | MarginPrior = "exponential",
        level: float | None = None,
        percentile: float = 25,
        tempering: float = 1.0,
        bias: BiasOfClasses | Literal["train_error"] = "flat",
        class_weight: ClassWeight = None,
        likelihood: Likelihood = "expected",
        handle_unknown: Unknown = "ignore",
        tol: float = 1e-8,
        max_iter: int = 200,
        verbose: int = False,
    ) -> None:
        self.columns = columns
        self.class_columns = class_columns
        self.C = C
        self.margin = margin
        self.level = level
        self.percentile = percentile
        self.tempering = tempering
        self.bias = bias
        self.class_weight = class_weight
        self.likelihood = likelihood
        self.handle_unknown = handle_unknown
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        return tags

    def _validated(self, X, *y, reset=True):
        v.check_choice("handle_unknown", self.handle_unknown, ("error", "ignore"))
        read = None if self.columns is None else self._columns_named
        return validate_categories(self, X, *y, reset=reset, read=read)

    def _columns_named(self, X):
        groups = groups_of(self.columns, X, names_of_columns(self))
        return {j for group in groups for j in group.columns}

    # -- columns -------------------------------------------------------------------
    def _learn_encoding(self, X):
        names = names_of_columns(self)
        self._groups = groups_of(self.columns, X, names)
        places = {
            j for group in self._groups if group.is_categorical for j in group.columns
        }
        self.categories_ = [np.empty(0)] * X.shape[1]
        for j in sorted(places):
            seen = X[~missing_values(X[:, j]), j]
            if not len(seen):
                raise ValueError(f"{called('column', [j], names)} of X is empty.")
            (self.categories_[j],) = learn_categories(seen[:, None], None, None)
        return self._numbers(X, self._read_columns(), "ignore")

    def _read_columns(self):
        return sorted(j for group in self._groups for j in group.columns)

    def _encode(self, X):
        own = getattr(self, "posteriors_", None)
        if not (isinstance(own, list) and own and isinstance(own[0], ProductPrior)):
            return X  # which scores refuse
        read = sorted(j for columns in own[0].columns for j in columns)
        return self._numbers(X, read, self.handle_unknown)

    def _numbers(self, X, read, handle_unknown):
        """Rows as numbers: codes of categories, and NaN where a value is missing."""
        names = names_of_columns(self)
        out = np.full(X.shape, np.nan)
        for j in read:
            if len(self.categories_[j]):
                own = [self.categories_[j]]
                absent = missing_values(X[:, j])
                codes = np.full(len(X), -1)
                if not absent.all():
                    shown = None if names is None else [names[j]]
                    codes[~absent] = encode_categories(
                        X[~absent, j][:, None], own, handle_unknown, None, shown
                    )[:, 0]
                out[:, j] = np.where(codes < 0, np.nan, codes)
            else:
                out[:, j] = _column_of_numbers(X[:, j], j, names)
        v.check_range("X", np.where(np.isnan(out), 0.0, out), at=True, columns=names)
        return out

    def _score_rows(self, model, X):
        try:
            return super()._score_rows(model, X)
        except ColumnError as error:
            raise ValueError(error.with_names(names_of_columns(self))) from None

    def _class_blocks(self, X, codes, weight, prior=None):
        sizes = {j: len(known) for j, known in enumerate(self.categories_)}
        groups, left_out = without_constant(self._groups, X)
        if left_out:
            names = called("column", left_out, names_of_columns(self))
            warnings.warn(
                f"MEDGenerativeClassifier: the training rows are constant in {names}, "
                "left out of the model.",
                UserWarning,
                stacklevel=user_stacklevel(),
            )
        shared = prior_of_columns(groups, X, weight, sizes)
        own = self._groups_of_classes(X)
        if not own:
            return super()._class_blocks(X, codes, weight, shared)
        blocks = []
        for k in range(len(self.classes_)):
            groups = own.get(k)
            prior = (
                shared if groups is None else prior_of_columns(groups, X, weight, sizes)
            )
            bind = lambda w, prior=prior: prior.block(X, w)  # noqa: E731
            base = self.tempering * weight
            blocks.append(self._class_block(bind, k, codes == k, base))
        return blocks

    def _groups_of_classes(self, X: NDArray[Any]) -> dict[int, list[Group]]:
        """Groups of the classes that have their own, by their places."""
        given = self.class_columns
        if given is None:
            return {}
        if not isinstance(given, Mapping):
            raise TypeError(
                f"class_columns={v.shown(given)} must be a dict of labels and columns."
            )
        out, names = {}, names_of_columns(self)
        read, categorical = self._read_columns(), self._categorical(self._groups)
        for label, columns in given.items():
            at = np.flatnonzero(self.classes_ == label)
            if not len(at):
                raise ValueError(
                    f"class_columns has {v.shown(label)}, which is no label of y: "
                    f"{v.shown(self.classes_.tolist())}."
                )
            groups = groups_of(columns, X, names)
            same = sorted(j for group in groups for j in group.columns) == read
            if not same or self._categorical(groups) != categorical:
                raise ValueError(
                    f"class_columns[{v.shown(label)}] must be of the columns of the "
                    "other classes, with categories where they have them: densities of "
                    "other columns cannot be compared."
                )
            out[int(at[0])] = without_constant(groups, X)[0]
        return out

    @staticmethod
    def _categorical(groups):
        return {j for group in groups if group.is_categorical for j in group.columns}

    def _prior_saw_no_row(self):
        given = all(not isinstance(g.kind, type) for g in self._groups)
        return given and self.class_columns is None and super()._prior_saw_no_row()


def _column_of_numbers(column: Any, j: int, names: list[str] | None) -> FloatArray:
    """A column as numbers, NaN where a value is missing."""
    absent = missing_values(column)
    out = np.full(len(column), np.nan)
    try:
        out[~absent] = column[~absent].astype(np.float64)
    except (TypeError, ValueError):
        wrong = next(x for x in column[~absent].tolist() if not v.is_real(x))
        raise ValueError(
            f"{called('column', [j], names)} of X holds {v.shown(wrong)}, which is no "
            "number; name it in columns= as Categorical, or leave it out."
        ) from None
    return out
