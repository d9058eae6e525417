"""Bundled classic data sets, makers of synthetic ones, and a reader of FASTA files."""

from __future__ import annotations

from maxent._support.lazy import lazy_exports

TYPE_CHECKING = False  # see maxent._support.lazy

_HOMES = {
    "_fasta": ("read_fasta",),
    "_hidden": ("make_motif_occupancy", "make_planted_motifs"),
    "_load": ("load_breast_cancer_wisconsin", "load_crabs"),
    "_series": ("make_switching_series",),
}

if TYPE_CHECKING:
    from maxent.datasets._fasta import read_fasta as read_fasta
    from maxent.datasets._hidden import (
        make_motif_occupancy as make_motif_occupancy,
        make_planted_motifs as make_planted_motifs,
    )
    from maxent.datasets._load import (
        load_breast_cancer_wisconsin as load_breast_cancer_wisconsin,
        load_crabs as load_crabs,
    )
    from maxent.datasets._series import make_switching_series as make_switching_series
else:
    __all__, __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
