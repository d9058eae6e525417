"""What tests of tables share."""

from scipy import sparse


def dense(table):
    """Features of a table as a dense array."""
    return table.X.toarray() if sparse.issparse(table.X) else table.X
