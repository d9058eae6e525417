"""Pictures of margin priors, machines, dual paths, scores, dependency trees,
hidden states and kernel matrices.

Displays in the manner of scikit-learn: class methods such as ``from_estimator`` draw,
on Axes given as ``ax`` or on a new figure, and return the display; ``plot`` draws it
again. Axes, Figure and artists are kept in attributes that end in ``_``. Matplotlib is
loaded when something is drawn.
"""

from __future__ import annotations

from maxent._support.lazy import lazy_exports

TYPE_CHECKING = False  # see maxent._support.lazy
_HOMES = {
    "margin_prior": ("MarginPriorDisplay",),
    "boundary": ("MEDBoundaryDisplay",),
    "comparison": ("BoundaryComparisonDisplay",),
    "roc": ("ROCComparisonDisplay",),
    "likelihoods": ("LogLikelihoodDisplay",),
    "path": ("DualPathDisplay",),
    "edge_weights": ("EdgeWeightsDisplay",),
    "candidates": ("CandidatesDisplay",),
    "convergence": ("ConvergenceDisplay",),
    "sample_size": ("SampleSizeDisplay",),
    "tree_graph": ("TreeGraphDisplay",),
    "state_path": ("StatePathDisplay",),
    "gram": ("GramDisplay",),
    "horizon": ("HorizonDisplay",),
    "alpha_path": ("AlphaPathDisplay",),
    "hidden_position": ("HiddenPositionDisplay",),
    "motif_logo": ("MotifLogoDisplay",),
}

if TYPE_CHECKING:
    from maxent.displays.alpha_path import AlphaPathDisplay as AlphaPathDisplay
    from maxent.displays.boundary import MEDBoundaryDisplay as MEDBoundaryDisplay
    from maxent.displays.candidates import CandidatesDisplay as CandidatesDisplay
    from maxent.displays.comparison import (
        BoundaryComparisonDisplay as BoundaryComparisonDisplay,
    )
    from maxent.displays.convergence import ConvergenceDisplay as ConvergenceDisplay
    from maxent.displays.edge_weights import EdgeWeightsDisplay as EdgeWeightsDisplay
    from maxent.displays.gram import GramDisplay as GramDisplay
    from maxent.displays.hidden_position import (
        HiddenPositionDisplay as HiddenPositionDisplay,
    )
    from maxent.displays.horizon import HorizonDisplay as HorizonDisplay
    from maxent.displays.likelihoods import LogLikelihoodDisplay as LogLikelihoodDisplay
    from maxent.displays.margin_prior import MarginPriorDisplay as MarginPriorDisplay
    from maxent.displays.motif_logo import MotifLogoDisplay as MotifLogoDisplay
    from maxent.displays.path import DualPathDisplay as DualPathDisplay
    from maxent.displays.roc import ROCComparisonDisplay as ROCComparisonDisplay
    from maxent.displays.sample_size import SampleSizeDisplay as SampleSizeDisplay
    from maxent.displays.state_path import StatePathDisplay as StatePathDisplay
    from maxent.displays.tree_graph import TreeGraphDisplay as TreeGraphDisplay
else:
    __all__, __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
