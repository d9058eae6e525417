"""Groups of neighbouring categorical columns, read as one column."""

from maxent._core.trees.column_groups cimport *
