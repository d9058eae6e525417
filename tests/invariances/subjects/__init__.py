"""Everything public that learns or compares, one row each.

Importing the parts fills the table.
"""

from invariances.subjects import (  # noqa: F401
    discrimination,
    distributions,
    kernels,
    latent,
    minentropy,
    models,
)
from invariances.subjects.table import KINDS, SUBJECTS

__all__ = ["KINDS", "SUBJECTS"]
