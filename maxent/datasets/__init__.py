"""Small classic data sets, bundled with the package."""

from __future__ import annotations

from maxent._support.lazy import lazy_exports

TYPE_CHECKING = False  # see maxent._support.lazy

_HOMES = {
    "_load": ("load_breast_cancer_wisconsin", "load_crabs"),
}

if TYPE_CHECKING:
    from maxent.datasets._load import (
        load_breast_cancer_wisconsin as load_breast_cancer_wisconsin,
        load_crabs as load_crabs,
    )
else:
    __all__, __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
