"""scikit-learn's transformers in model files: an allow-list, with all they have learnt.

Part of what they have learnt is private to scikit-learn and may change from version to
version, so a file with one names the version.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

from maxent._support.registry import resolve
from maxent._support.validation import user_stacklevel

__all__ = [
    "FOREIGN",
    "foreign_state",
    "has_foreign",
    "installed_version",
    "restore_foreign",
    "steps_of",
    "warn_of_version",
]

FOREIGN = {
    name: f"sklearn.{module}:{name}"
    for module, names in {
        "compose": ("ColumnTransformer",),
        "decomposition": ("PCA", "TruncatedSVD"),
        "feature_extraction.text": (
            "CountVectorizer",
            "TfidfTransformer",
            "TfidfVectorizer",
        ),
        "feature_selection": ("VarianceThreshold",),
        "impute": ("MissingIndicator", "SimpleImputer"),
        "pipeline": ("FeatureUnion",),
        "preprocessing": (
            "Binarizer",
            "FunctionTransformer",
            "KBinsDiscretizer",
            "MaxAbsScaler",
            "MinMaxScaler",
            "Normalizer",
            "OneHotEncoder",
            "OrdinalEncoder",
            "PolynomialFeatures",
            "PowerTransformer",
            "QuantileTransformer",
            "RobustScaler",
            "StandardScaler",
        ),
    }.items()
    for name in names
}


def foreign_state(step: Any) -> tuple[str, dict[str, Any], dict[str, Any]] | None:
    """Name, parameters and all other attributes of a transformer of the list.

    Columns that a function has chosen are written as the ones that it chose.
    """
    name = type(step).__name__
    if name not in FOREIGN or resolve(FOREIGN[name]) is not type(step):
        return None
    params = step.get_params(deep=False)
    state = {k: x for k, x in vars(step).items() if k not in params}
    state.pop("_metadata_request", None)
    if name == "ColumnTransformer" and "_columns" in state:
        chosen = zip(params["transformers"], state["_columns"], strict=True)
        params["transformers"] = [(*one[:2], columns) for one, columns in chosen]
    return name, params, state


def restore_foreign(name: str, params: dict[str, Any], state: dict[str, Any]) -> Any:
    """Make a transformer of the list from its state.

    Raises
    ------
    ValueError
        For a parameter that the class lacks, and an attribute that would hide one of
        its methods.
    """
    cls = resolve(FOREIGN[name])
    unknown = sorted(set(params) - set(cls._get_param_names()))
    if unknown:
        raise ValueError(f"{name} has no parameter {unknown[0]!r}")
    step = cls(**params)
    for key, value in state.items():
        if not key.isidentifier() or key.startswith("__") or hasattr(cls, key):
            raise ValueError(f"{name} keeps nothing under the name {key!r}")
        vars(step)[key] = value
    return step


def steps_of(estimator: Any) -> Iterator[tuple[str, Any]]:
    """Steps inside an estimator, fitted ones where there are such, with their names."""
    kind = type(estimator).__name__
    if kind == "Pipeline":
        yield from estimator.steps
    elif kind == "FeatureUnion":
        yield from estimator.transformer_list
    elif kind == "ColumnTransformer":
        parts = getattr(estimator, "transformers_", estimator.transformers)
        yield from ((part[0], part[1]) for part in parts)


def has_foreign(estimator: Any) -> bool:
    """True if scikit-learn's transformers are in an estimator."""
    inside = any(has_foreign(step) for _, step in steps_of(estimator))
    return inside or type(estimator).__name__ in FOREIGN


def installed_version() -> str:
    """The version of scikit-learn."""
    import sklearn

    return str(sklearn.__version__)


def warn_of_version(file: str, written: Any) -> None:
    """Warn if a file has transformers of another minor version of scikit-learn."""
    here = installed_version()
    if written is None or str(written).split(".")[:2] == here.split(".")[:2]:
        return
    warnings.warn(
        f"{file}: its steps of scikit-learn were written with version {written}, and "
        f"{here} is installed, which may read them otherwise: compare predictions of "
        "rows that you know, or install that version, load, and save again.",
        UserWarning,
        stacklevel=user_stacklevel(),
    )
