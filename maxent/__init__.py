"""Maximum-entropy learning: certified discrimination and kernels.

Import is lazy: ``import maxent`` costs little and loads neither scikit-learn nor
Numba; the parts load when first used.
"""

from __future__ import annotations

import importlib

__version__ = "0.1.0"

_SUBPACKAGES = ("datasets", "discrimination", "displays", "families", "kernels")
_HOMES = {
    "MEDClassifier": "maxent.discrimination",
    "MEDRegressor": "maxent.discrimination",
    "MEDFeatureSelector": "maxent.discrimination",
    "MEDGaussianClassifier": "maxent.discrimination",
    "MEDBayesNetClassifier": "maxent.discrimination",
    "MEDTreeClassifier": "maxent.discrimination",
    "ChowLiuClassifier": "maxent.discrimination",
    "MEDOutlierDetector": "maxent.discrimination",
    "FisherFeatures": "maxent.kernels",
    "save": "maxent._support.persistence",
    "load": "maxent._support.persistence",
}

__all__ = ["__version__", *_SUBPACKAGES, *_HOMES]


def __getattr__(name):
    if name in _SUBPACKAGES:
        return importlib.import_module(f"maxent.{name}")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'maxent' has no attribute {name!r}")


def __dir__():
    return sorted(__all__)
