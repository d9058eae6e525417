"""Small classic data sets, bundled with the package."""

from maxent.datasets._load import load_breast_cancer_wisconsin, load_crabs

__all__ = ["load_breast_cancer_wisconsin", "load_crabs"]
