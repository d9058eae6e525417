"""Installed parts: folder of the C headers, versions and settings in use."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from maxent._version import __version__

_NEEDED = ("numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl", "numba")
_OPTIONAL = ("Cython", "dask", "matplotlib", "pandas", "hmmlearn", "onnx", "skl2onnx")
_VARIABLES = (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"),
    *("OPENBLAS_CORETYPE", "NUMBA_NUM_THREADS", "NUMBA_DISABLE_JIT"),
)


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
    return str(Path(__file__).resolve().parent / "_core")


def show_versions() -> None:
    """Print versions of Python, of this package and of what it rests on.

    For reports of problems: system, processor, packages, the BLAS and OpenMP libraries
    that are loaded with their threads, and the variables that change them.

    Examples
    --------
    >>> import maxent
    >>> maxent.show_versions()  # doctest: +ELLIPSIS
    System:
        python: 3...
    """
    for title, rows in versions().items():
        print(f"{title}:")
        width = max(map(len, rows), default=0)
        for name, value in rows.items():
            print(f"{name:>{max(width, 10)}}: {value}")
        print()


def versions() -> dict[str, dict[str, Any]]:
    """Tables of names and values, by title."""
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_info

    from maxent._core.threads import has_openmp
    from maxent._support.threads import effective_threads

    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else "?"
    built = "with OpenMP" if has_openmp() else "without OpenMP"
    libraries = {
        f"{one['user_api']} ({one['prefix']})": ", ".join(
            [
                f"{one['num_threads']} threads",
                *(
                    f"{name} {one[name]}"
                    for name in ("version", "architecture", "threading_layer")
                    if one.get(name)
                ),
            ]
        )
        for one in threadpool_info()
    }
    return {
        "System": {
            "python": " ".join(sys.version.split()),
            "executable": sys.executable,
            "machine": platform.platform(),
            "processor": _processor(),
            "cores": f"{os.cpu_count()}, {usable} of them usable",
        },
        "Packages": {
            "maxent": f"{__version__}, {built}, {effective_threads()} threads",
            **{name: _version(name) for name in (*_NEEDED, *_OPTIONAL)},
        },
        "Libraries": libraries,
        "Variables": {
            name: os.environ[name] for name in _VARIABLES if name in os.environ
        },
    }


def _version(name):
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def _processor():
    """Name of the processor, which Linux alone does not tell by `platform`."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
