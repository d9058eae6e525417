"""Pictures of margin priors, machines, dual paths, scores and dependency trees.

Displays in the manner of scikit-learn: the constructor or a class method takes what is
to be drawn, ``plot`` draws it and keeps Axes, Figure and artists in attributes that
end in ``_``. Matplotlib is loaded when something is drawn.
"""

from __future__ import annotations

from maxent._support.lazy import lazy_exports

_HOMES = {
    "margin_prior": ("MarginPriorDisplay",),
    "boundary": ("MEDBoundaryDisplay",),
    "comparison": ("BoundaryComparisonDisplay",),
    "roc": ("ROCComparisonDisplay",),
    "likelihoods": ("LogLikelihoodDisplay",),
    "path": ("DualPathDisplay",),
    "edge_weights": ("EdgeWeightsDisplay",),
    "tree_graph": ("TreeGraphDisplay",),
}

__all__, __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
