"""Gram matrices of product kernels in tiles: to memory, to a file, to a Dask array."""

from __future__ import annotations

import os
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from maxent._support import validation as v
from maxent._support.processes import spread
from maxent.kernels.pairs._routes import SAMPLERS
from maxent.kernels.product import Models, product_kernel


def product_kernel_tiles(
    P: Models,
    Q: Models | None = None,
    *,
    tile: int = 1000,
    out: str | os.PathLike[str] | Literal["dask"] | None = None,
    n_jobs: int | None = None,
    **options: Any,
) -> Any:
    """Return the product kernel between many models, computed tile by tile.

    The tiles are tasks of joblib, so that a back end such as
    ``joblib.parallel_config(backend="dask")`` spreads them over machines.

    Parameters
    ----------
    P, Q : batch of a family, or list of models
        As for :func:`product_kernel`. With Q None only the tiles on and above the
        diagonal are computed.
    tile : int, default=1000
        Rows and columns of a tile. The numbers of a tile have the same bits wherever it
        is computed; other sizes of tiles may differ by rounding.
    out : path, "dask" or None, default=None
        None: an array in memory. A path ending in ".npy": a memory-mapped file, which
        takes this name when it is complete. "dask": a Dask array whose blocks are
        computed when they are asked for.
    n_jobs : int, optional
        Processes of joblib; not read with ``out="dask"``.
    **options
        Other arguments of :func:`product_kernel`; `rho` and `horizon` are single
        numbers.

    Returns
    -------
    ndarray, memmap or dask.array.Array (len(P), len(Q))

    Raises
    ------
    ValueError
        For several powers or horizons, methods by sampling without `sample`, whose
        draws belong to whole lists, and a path that does not end in ".npy".

    See Also
    --------
    product_kernel : All at once.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.families import Poisson
    >>> from maxent.kernels import product_kernel, product_kernel_tiles
    >>> P = Poisson(np.arange(1.0, 8.0))
    >>> K = product_kernel_tiles(P, tile=3, rho=1.0)
    >>> bool(np.allclose(K, product_kernel(P, rho=1.0)))
    True
    """
    tile = v.check_count("tile", tile)
    v.check_jobs(n_jobs)
    P = P if hasattr(P, "__len__") else list(P)
    if Q is not None and not hasattr(Q, "__len__"):
        Q = list(Q)
    _check_options(options)
    shape = len(P), len(P if Q is None else Q)
    if not all(shape):
        raise ValueError("P and Q need at least one model each.")
    # every refusal of `product_kernel` comes before the first tile
    product_kernel(P[:1], None if Q is None else Q[:1], **options)
    grid = _Grid(P, Q, tile, options)
    if isinstance(out, str) and out == "dask":
        return grid.lazy()
    if out is None:
        K = np.empty(shape)
        grid.fill(K, n_jobs)
        return K
    return _to_file(grid, shape, os.fspath(out), n_jobs)


def _check_options(options):
    for name in ("rho", "horizon"):
        if np.ndim(options.get(name, 0)):
            raise ValueError(
                f"{name}={v.shown(options[name])} must be one number; call "
                "product_kernel_tiles once for each."
            )
    method = options.get("method", "auto")
    if method in SAMPLERS and options.get("sample") is None:
        remedy = "method='shared_sample' with sample=SharedSample(...)"
        raise ValueError(
            f"method={method!r} draws for whole lists of models, so tiles would not "
            f"fit together; use {remedy}."
        )


class _Grid:
    """Tiles of a Gram matrix; of a symmetric one those on and above the diagonal."""

    def __init__(self, P, Q, tile, options):
        self.P, self.Q, self.options = P, Q, options
        self.rows = _cuts(len(P), tile)
        self.columns = self.rows if Q is None else _cuts(len(Q), tile)

    def tasks(self):
        """(place of a tile, its arguments) of all tiles that are computed."""
        for i, rows in enumerate(self.rows):
            for j, columns in enumerate(self.columns):
                if self.Q is not None:
                    yield (i, j), (self.P[rows], self.Q[columns], self.options)
                elif i == j:
                    yield (i, j), (self.P[rows], None, self.options)
                elif i < j:
                    yield (i, j), (self.P[rows], self.P[columns], self.options)

    def fill(self, K, n_jobs):
        """Write all tiles into a matrix, as they come."""
        tasks = list(self.tasks())
        tiles = spread(_tile, [task for _, task in tasks], n_jobs)
        for ((i, j), _), part in zip(tasks, tiles, strict=True):
            K[self.rows[i], self.columns[j]] = part
            if self.Q is None and i != j:
                K[self.columns[j], self.rows[i]] = part.T

    def lazy(self):
        """Dask array of the tiles."""
        import dask
        import dask.array as da

        run = dask.delayed(_tile, pure=False)
        known = {
            at: run(*(dask.delayed(a, traverse=False) for a in args))
            for at, args in self.tasks()
        }
        blocks = [[None] * len(self.columns) for _ in self.rows]
        for i, rows in enumerate(self.rows):
            for j, columns in enumerate(self.columns):
                shape = rows.stop - rows.start, columns.stop - columns.start
                at, turned = ((i, j), False) if (i, j) in known else ((j, i), True)
                size = shape[::-1] if turned else shape
                part = da.from_delayed(known[at], size, np.float64)
                blocks[i][j] = part.T if turned else part
        return da.block(blocks)


def _cuts(n: int, tile: int) -> list[slice]:
    return [slice(lo, min(lo + tile, n)) for lo in range(0, n, tile)]


def _tile(P: Any, Q: Any, options: dict[str, Any]) -> NDArray[np.float64]:
    return product_kernel(P, Q, **options)


def _to_file(grid, shape, path, n_jobs):
    """Memory map of a file that is complete, or none."""
    if not path.endswith(".npy"):
        raise ValueError(
            f"out={v.shown(path)} must end in '.npy', or be None or 'dask'."
        )
    part = f"{path}.part"
    try:
        K = np.lib.format.open_memmap(part, "w+", np.float64, shape)
        grid.fill(K, n_jobs)
        K.flush()
        del K
        os.replace(part, path)
    finally:
        if os.path.exists(part):
            os.remove(part)
    return np.load(path, mmap_mode="r")
