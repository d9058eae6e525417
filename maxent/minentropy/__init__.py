"""Max-margin min-entropy models: classifiers with hidden variables."""

from __future__ import annotations

from maxent._support.lazy import lazy_exports

TYPE_CHECKING = False  # see maxent._support.lazy
_HOMES = {
    "_trust_ball": ("TrustBall",),
    "grids": ("M3EGridClassifier", "gradient_cells"),
    "feature_maps": ("ChainMap", "check_feature_map"),
    "model": ("M3EModel",),
    "motif_files": ("read_motifs", "write_motifs"),
    "motif_search": ("find_motifs",),
    "motif_table": ("Motif", "MotifPlaces"),
    "motifs": ("M3EMotifClassifier",),
    "classifier": ("M3EClassifier",),
    "path": ("alpha_path",),
    "margin_qp": ("MarginResult", "solve_margin_qp"),
    "renyi": (
        "rao_score",
        "rao_weights",
        "renyi_entropy",
        "renyi_score",
        "renyi_weights",
        "tsallis_entropy",
    ),
}

if TYPE_CHECKING:
    from maxent.minentropy._trust_ball import TrustBall as TrustBall
    from maxent.minentropy.classifier import M3EClassifier as M3EClassifier
    from maxent.minentropy.feature_maps import ChainMap as ChainMap
    from maxent.minentropy.feature_maps import check_feature_map as check_feature_map
    from maxent.minentropy.grids import M3EGridClassifier as M3EGridClassifier
    from maxent.minentropy.grids import gradient_cells as gradient_cells
    from maxent.minentropy.margin_qp import MarginResult as MarginResult
    from maxent.minentropy.margin_qp import solve_margin_qp as solve_margin_qp
    from maxent.minentropy.model import M3EModel as M3EModel
    from maxent.minentropy.motif_files import read_motifs as read_motifs
    from maxent.minentropy.motif_files import write_motifs as write_motifs
    from maxent.minentropy.motif_search import find_motifs as find_motifs
    from maxent.minentropy.motif_table import Motif as Motif
    from maxent.minentropy.motif_table import MotifPlaces as MotifPlaces
    from maxent.minentropy.motifs import M3EMotifClassifier as M3EMotifClassifier
    from maxent.minentropy.path import alpha_path as alpha_path
    from maxent.minentropy.renyi import rao_score as rao_score
    from maxent.minentropy.renyi import rao_weights as rao_weights
    from maxent.minentropy.renyi import renyi_entropy as renyi_entropy
    from maxent.minentropy.renyi import renyi_score as renyi_score
    from maxent.minentropy.renyi import renyi_weights as renyi_weights
    from maxent.minentropy.renyi import tsallis_entropy as tsallis_entropy
else:
    __all__, __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
