"""Folder of the C headers of the compiled functions."""

from __future__ import annotations

from pathlib import Path


def get_include() -> str:
    """Return the folder of the C headers that some ``.pxd`` files of the package name.

    For ``include_dirs`` of extension modules that ``cimport`` from ``maxent.cython``,
    as ``numpy.get_include`` for those that use NumPy's headers. Cython finds the
    ``.pxd`` files themselves through the installed package.

    Returns
    -------
    str
        An absolute path.

    Examples
    --------
    >>> import os
    >>> import maxent
    >>> os.path.exists(os.path.join(maxent.get_include(), "chains", "chain_loops.h"))
    True
    """
    return str(Path(__file__).resolve().parents[1] / "_core")
