"""Estimators, and values such as models and priors, saved to files and loaded.

:mod:`.model_file` has the format. Reading calls nothing that the file names, except the
constructor of a class of the fixed registries in :mod:`.registry`: estimators, and what
they hold (priors and posteriors, stored as their specifications).

Estimators check their fitted arrays again before predicting, since a checksum finds
damage and not malice.
"""

from __future__ import annotations

import os
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

from maxent._persistence.archive import ModelFileError
from maxent._persistence.calibrated import (
    CALIBRATED,
    calibrated_state,
    restore_calibrated,
)
from maxent._persistence.encoding import Encoder
from maxent._persistence.foreign_steps import (
    FOREIGN,
    foreign_state,
    has_foreign,
    installed_version,
    restore_foreign,
    steps_of,
    warn_of_version,
)
from maxent._persistence.model_file import (
    FITTED_NAME,
    FORMAT_VERSION,
    ModelFile,
    check_path,
    read_model,
    write_model,
)
from maxent._support import validation as v
from maxent._support.registry import CLASSES, VALUES, rebuilt, resolve
from maxent._support.typing import PathLike
from maxent._version import __version__

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

__all__ = [
    "CLASSES",
    "FORMAT_VERSION",
    "VALUES",
    "ModelFile",
    "ModelFileError",
    "load",
    "read_model",
    "resolve_class",
    "save",
]


def save(
    estimator: BaseEstimator | Any,
    path: PathLike,
    *,
    extra: dict[str, Any] | None = None,
    compact: bool = False,
) -> None:
    """Save a fitted estimator, or a model, to a file, whole or not at all.

    Parameters
    ----------
    estimator : estimator, model, family or other value
        Fitted instance of an estimator of this package, a scikit-learn pipeline of
        such and of scikit-learn's scalers, imputers, encoders, vectorizers, PCA,
        ColumnTransformer and FeatureUnion, or its CalibratedClassifierCV of one, with
        method="sigmoid"; or a value, such as a CategoricalHMM or a batch of a family.
    path : str or path-like
        Written as given; no suffix is added.  An existing file is replaced only
        after the new one is complete on disk.
    extra : dict, default=None
        More to keep beside the estimator (scales of the features, their names), of
        the same kinds of values. The command line keeps its scales there.
    compact : bool, default=False
        Leave out the training rows and multipliers of
        :class:`~maxent.discrimination.MEDClassifier` and
        :class:`~maxent.discrimination.MEDRegressor` with kernel="linear", which predict
        by `coef_` and `intercept_`: `support_`, `support_vectors_` and `dual_coef_` are
        then missing from what is loaded. Other kernels are refused, other estimators
        saved whole.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        If the estimator is not fitted.
    ValueError
        With `compact`, for a kernel that needs the training rows to predict.
    TypeError
        If its class, or that of a step, which is named, is not in the registry, or a
        value cannot be stored without pickle: a kernel function, a random generator, an
        array of Python objects.

    Notes
    -----
    Saved are ``get_params(deep=False)`` and the attributes whose names end in ``_``
    and do not start with it; of a value its parameters and `feature_names`, without
    its `fit_result`. Output settings (``set_output``) and metadata requests are not.
    Numbers keep every bit; enumeration members become their values. Of scikit-learn's
    transformers everything but metadata requests is saved, with scikit-learn's version;
    columns that a function chose are saved as the columns that it chose.

    Without `compact` the file of a kernel machine holds its support vectors, which are
    rows of the training data.

    Examples
    --------
    >>> import os
    >>> import tempfile
    >>> import maxent
    >>> from maxent.datasets import load_crabs
    >>> X, y = load_crabs(return_X_y=True)
    >>> model = maxent.MEDClassifier(C=10).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "crabs.npz")
    ...     maxent.save(model, path)
    ...     again = maxent.load(path)
    >>> bool((again.predict(X) == model.predict(X)).all())
    True
    """
    from sklearn.utils.validation import check_is_fitted

    state = _state_of(estimator, compact) or _value_state(estimator)
    if state is None:
        raise _cannot_save(estimator)
    class_name, params, fitted = state
    _check_steps(estimator, estimator)
    check_path(path)
    if class_name in CLASSES:
        check_is_fitted(estimator)
    encoder = Encoder(VALUES, partial(_state_inside, compact=compact), FOREIGN)
    version = installed_version() if has_foreign(estimator) else None
    write_model(path, class_name, params, fitted, extra or {}, encoder, version)


def _cannot_save(estimator: Any) -> TypeError:
    """The error for what no model file holds, with what may have been meant."""
    remedy = (
        "model files hold the estimators of maxent, such as MEDClassifier, pipelines "
        "of them, and the families, priors and models of maxent"
    )
    if isinstance(estimator, (str, os.PathLike)):
        remedy = "the estimator comes first: save(estimator, path)"
    elif isinstance(estimator, type):
        remedy = "it is a class; save an instance that was fitted"
    elif "best_estimator_" in getattr(estimator, "__dict__", {}):
        remedy = "it is a search; save its best_estimator_"
    elif isinstance(estimator, (list, tuple, dict)):
        remedy = f"{remedy}, one in each file; save the parts by themselves"
    return _not_saved(estimator, remedy)


def _check_steps(pipeline: Any, estimator: Any, path: str = "") -> None:
    """Refuse a pipeline with a step, of any depth, that no model file holds."""
    for name, step in steps_of(estimator):
        where = f"{path}{name}"
        if not isinstance(step, (str, type(None))) and _state_inside(step) is None:
            if hasattr(step, "best_estimator_"):
                raise _not_saved(
                    pipeline,
                    f"its step {where!r} is a search; put its best_estimator_ in its "
                    "place, as sklearn.pipeline.make_pipeline(*pipeline[:-1], "
                    "pipeline[-1].best_estimator_) does",
                )
            raise _not_saved(
                pipeline,
                f"its step {where!r}, {type(step).__name__}, is of another library, "
                "and none of the scalers, imputers, encoders and vectorizers of scikit-"
                "learn that model files hold; skops.io.dump saves such pipelines, or "
                "save the step of maxent alone, as pipeline[-1]",
            )
        _check_steps(pipeline, step, f"{where}__")


def _not_saved(estimator: Any, remedy: str) -> TypeError:
    return TypeError(
        f"cannot save estimator={v.shown(estimator)} of type "
        f"{type(estimator).__module__}.{type(estimator).__qualname__}: {remedy}"
    )


def load(path: PathLike, *, return_extra: bool = False) -> Any:
    """Load the estimator, or the value, of a model file.

    Parameters
    ----------
    path : str or path-like
        As written by :func:`save`, which has an example.
    return_extra : bool, default=False
        Return `extra` besides.

    Returns
    -------
    estimator : fitted estimator, model or other value
        Of the class that was saved.
    extra : dict
        Only with `return_extra`: what :func:`save` was given beside the estimator. Of
        the command line: ``"feature_names"``, ``"label"``, ``"standardize"`` (None, or
        the ``"mean"`` and ``"scale"`` of the features), ``"columns"`` (None, or which
        columns were ``"text"``, their ``"categories"``, and what is to ``"fill"``
        missing numbers), ``"sequences"``.

    Raises
    ------
    ModelFileError
        If the file is not a model file, is damaged, names an unknown class or comes
        from a newer version of the format.

    Warns
    -----
    UserWarning
        If steps of scikit-learn were written with another minor version of it. Without
        `return_extra`, if the command line changed the features before the
        estimator was fitted: it then wants rows that are changed in the same way.
    """
    model = read_model(path, make=_make_value, make_estimator=_make_estimator)
    make = _make_estimator if model.class_name in CLASSES else _make_bare_value
    try:
        estimator = make(model.class_name, model.params, model.fitted)
    except ModelFileError as error:
        raise ModelFileError(
            f"{os.fspath(path)}: {error}; the file was written by maxent "
            f"{model.maxent_version}, load it with that version"
        ) from None
    warn_of_version(os.fspath(path), model.sklearn_version)
    if return_extra:
        return estimator, model.extra
    changed = _changes_of_features(model.extra)
    if changed:
        warnings.warn(
            f"{os.fspath(path)}: this {model.class_name} was fitted to features that "
            f"`maxent fit` had {changed}, and wants its rows so; "
            "load(path, return_extra=True) returns the numbers besides, and "
            "`maxent predict` uses them.",
            UserWarning,
            stacklevel=2,
        )
    return estimator


def _changes_of_features(extra: dict[str, Any]) -> str:
    """Words for what the command line did to the features; empty for nothing."""
    changes = []
    columns = extra.get("columns")
    if isinstance(columns, dict) and "categories" in columns:
        changes.append("encoded")
    elif isinstance(columns, dict) and columns.get("bins") is not None:
        changes.append("binned")
    if extra.get("standardize") is not None:
        changes.append("standardized")
    return " and ".join(changes)


def _state_of(
    estimator: Any, compact: bool = False
) -> tuple[str, dict[str, Any], dict[str, Any]] | None:
    """Name, parameters and fitted attributes of an estimator of the registry."""
    name = type(estimator).__name__
    if name not in CLASSES or resolve_class(name) is not type(estimator):
        return None
    if name == CALIBRATED:
        return name, estimator.get_params(deep=False), calibrated_state(estimator)
    fitted = {k: x for k, x in vars(estimator).items() if FITTED_NAME.match(k)}
    if compact and fitted and hasattr(estimator, "_spare_attributes"):
        spare = estimator._spare_attributes()
        fitted = {k: x for k, x in fitted.items() if k not in spare}
    return name, estimator.get_params(deep=False), fitted


def _state_inside(
    estimator: Any, compact: bool = False
) -> tuple[str, dict[str, Any], dict[str, Any]] | None:
    """State of an estimator inside another, which may be one of scikit-learn."""
    return _state_of(estimator, compact) or foreign_state(estimator)


def _value_state(value: Any) -> tuple[str, dict[str, Any], dict[str, Any]] | None:
    """State of a value: its specification takes the place of the parameters."""
    name = type(value).__name__
    if name not in VALUES or resolve(VALUES[name]) is not type(value):
        return None
    return name, value.get_spec(), {}


def _make_bare_value(name: str, spec: dict[str, Any], fitted: dict[str, Any]) -> Any:
    if fitted:
        raise ModelFileError(f"{name} has fitted attributes, which no value has")
    try:
        return _make_value(name, spec)
    except Exception as error:  # a hostile file may fail in any constructor
        raise ModelFileError(
            f"the {name} of it cannot be made ({type(error).__name__}: {error})"
        ) from error


def _make_estimator(name: Any, params: dict[str, Any], fitted: dict[str, Any]) -> Any:
    """Estimator of the registry from its parameters and fitted attributes."""
    if name in FOREIGN:
        try:
            return restore_foreign(name, params, fitted)
        except (TypeError, ValueError, AttributeError) as error:
            raise ModelFileError(f"{name} cannot be restored ({error})") from None
    if name not in CLASSES:
        raise ModelFileError(f"it holds the unknown class {str(name)[:60]!r}")
    cls = resolve_class(name)
    unknown = sorted(set(params) - set(cls._get_param_names()))
    if unknown:
        raise ModelFileError(
            f"{name} of maxent {__version__} has no parameter {unknown[0]!r}"
        )
    try:
        estimator = cls(**params)
    except TypeError as error:  # a parameter without a default is missing
        raise ModelFileError(f"{name} cannot be made ({error})") from None
    if name == CALIBRATED:
        try:
            return restore_calibrated(estimator, fitted)
        except (KeyError, TypeError, ValueError) as error:
            raise ModelFileError(f"{name} cannot be restored ({error})") from None
    for key, value in fitted.items():
        if not FITTED_NAME.match(key):
            raise ModelFileError(f"{key!r} is not the name of a fitted attribute")
        try:
            setattr(estimator, key, value)
        except AttributeError:
            raise ModelFileError(
                f"attribute {key!r} of {name} cannot be restored"
            ) from None
    return estimator


def resolve_class(class_name: str) -> type[Any]:
    """The class that the registry keeps under a name, imported when asked for."""
    return resolve(CLASSES[class_name])


def _make_value(name: str, spec: Any) -> Any:
    """Value of a class of the registry `VALUES`."""
    if name not in VALUES:
        raise ModelFileError(f"it holds a value of the unknown class {name[:60]!r}")
    cls = resolve(VALUES[name])
    return rebuilt(cls, spec)
