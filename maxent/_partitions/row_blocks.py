"""Rows of an array or file in blocks, for fits that visit one block at a time."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxent._support import validation as v

_BLOCK = 1 << 25  # bytes of a block, about


class RowBlocks:
    """Rows of one array or ``.npy`` file, in blocks that a fit visits in order.

    For rows that do not fit into memory, without Dask: estimators that fit Dask arrays
    take it in place of one, read a block at a time, and give the bits that a Dask array
    with the same blocks would. Others take it as one array.

    Parameters
    ----------
    rows : ndarray, memmap, CSR array, or path (n_samples, n_features) or (n_samples,)
        A path is that of a ``.npy`` file, which is mapped into memory and never read
        as a whole.
    block_rows : int, optional
        Rows of a block, >= 1; the last may have fewer. None makes blocks of 32 MB.

    Attributes
    ----------
    shape : tuple of int
    ndim : int
    dtype : dtype
    chunks : tuple of tuple of int
        Rows of the blocks, and the number of columns.

    Raises
    ------
    TypeError
        If `rows` is no array, sparse array or path.
    ValueError
        For arrays of no or more than two dimensions, or without rows, and sparse ones
        that are not CSR.

    See Also
    --------
    numpy.load : Files of arrays, mapped by ``mmap_mode="r"``.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent import MEDClassifier, RowBlocks
    >>> rng = np.random.default_rng(0)
    >>> X = RowBlocks(rng.normal(size=(1000, 3)), block_rows=300)
    >>> X.chunks
    ((300, 300, 300, 100), (3,))
    >>> y = (X.compute()[:, 0] > 0).astype(int)
    >>> model = MEDClassifier("linear").fit(X, y)
    >>> bool(model.converged_), model.predict(X).shape
    (True, (1000,))
    """

    def __init__(self, rows: Any, block_rows: int | None = None) -> None:
        if isinstance(rows, (str, PathLike)):
            rows = _mapped(rows)
        if v.is_dask(rows):
            raise TypeError(
                f"rows={v.shown(rows)} comes in blocks already; pass it to fit as it "
                "is (a data frame by its to_dask_array(lengths=True))."
            )
        if not (isinstance(rows, np.ndarray) or sp.issparse(rows)):
            raise TypeError(
                f"rows={v.shown(rows)} must be an array, a CSR array, or the path of a "
                ".npy file; use numpy.asarray(rows) for lists."
            )
        if sp.issparse(rows) and rows.format != "csr":
            raise ValueError(
                f"rows is a sparse array of format {rows.format!r}, whose rows cannot "
                "be cut; use rows.tocsr()."
            )
        if rows.ndim not in (1, 2) or not rows.shape[0]:
            raise ValueError(
                f"rows has shape {rows.shape}; expected (n_samples, n_features) or "
                "(n_samples,), with one row at least."
            )
        n = rows.shape[0]
        if block_rows is None:
            size = rows.data.nbytes if sp.issparse(rows) else rows.nbytes
            block_rows = max(1, _BLOCK * n // max(size, 1))
        else:
            block_rows = v.check_count("block_rows", block_rows)
        self._cut(rows, np.diff(np.r_[0 : n : min(block_rows, n), n]).tolist())

    def _cut(self, rows, lengths):
        self._rows = rows
        self.shape, self.ndim, self.dtype = rows.shape, rows.ndim, rows.dtype
        self.chunks = (tuple(lengths), *((d,) for d in rows.shape[1:]))

    def __repr__(self) -> str:
        return f"RowBlocks(shape={self.shape}, blocks={len(self.chunks[0])})"

    def __len__(self) -> int:
        return int(self.shape[0])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """All rows, for what needs them at once; CSR rows are no array."""
        if sp.issparse(self._rows):
            raise TypeError(
                "sparse RowBlocks are no array: use compute(), which is a CSR array."
            )
        if copy:
            return np.array(self._rows, dtype=dtype)
        return np.asarray(self._rows, dtype=dtype)

    @property
    def numblocks(self) -> tuple[int, ...]:
        """Number of blocks along each axis."""
        return tuple(map(len, self.chunks))

    def blocks(self) -> list[Any]:
        """Views of the blocks, in order; sparse ones are copies.

        Returns
        -------
        list of ndarray or CSR
        """
        ends = np.cumsum(self.chunks[0]).tolist()
        parts = [
            self._rows[end - size : end]
            for end, size in zip(ends, self.chunks[0], strict=True)
        ]
        # plain arrays over the same memory: sums of a memmap would be memmaps
        return parts if sp.issparse(self._rows) else [np.asarray(p) for p in parts]

    def compute(self) -> Any:
        """All rows, as the array that was given; a file is mapped, not read.

        Returns
        -------
        ndarray or CSR (n, n_features)
        """
        return self._rows if sp.issparse(self._rows) else np.asarray(self._rows)

    def rechunk(self, chunks: Any) -> RowBlocks:
        """Return the same rows in blocks of other lengths.

        Parameters
        ----------
        chunks : dict {0: sequence of int}
            Lengths of the blocks, as for ``dask.array.Array.rechunk``.

        Returns
        -------
        RowBlocks
        """
        lengths = [int(size) for size in chunks[0]]
        if min(lengths, default=0) < 1 or sum(lengths) != self.shape[0]:
            raise ValueError(
                f"chunks={v.shown(chunks)} must have lengths >= 1 that add up to "
                f"{self.shape[0]} rows."
            )
        out = object.__new__(RowBlocks)
        out._cut(self._rows, lengths)
        return out


def _mapped(path: Any) -> Any:
    """A .npy file, mapped into memory; NumPy's own error hints at unsafe pickles."""
    try:
        return np.load(path, mmap_mode="r")
    except ValueError:
        raise ValueError(
            f"{path} is not a whole .npy file of numbers; numpy.save writes one."
        ) from None
