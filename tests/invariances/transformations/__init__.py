"""Everything that must not matter or must be refused, one row each.

Importing the parts fills the table.
"""

from invariances.transformations import (  # noqa: F401
    frames,
    labels,
    storage,
    values,
)
from invariances.transformations.table import TRANSFORMATIONS

__all__ = ["TRANSFORMATIONS"]
