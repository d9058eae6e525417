"""The example packages of compiled code, built against the installed maxent and run."""

import pathlib
import shutil

import numpy as np
import pytest
from processes import run

from maxent.discrimination import (
    ExponentialMargin,
    chow_liu_tree,
    solve_dual,
    spanning_tree_log_partition,
)
from maxent.models import CategoricalHMM

EXAMPLES = pathlib.Path(__file__).resolve().parents[1] / "examples"


BUILD = """
import os, runpy, sys
sys.argv[1:], folders = ["-q", "build_ext", "--inplace"], sys.argv[1:]
for folder in folders:
    os.chdir(folder)
    runpy.run_path("setup.py", run_name="__main__")
"""
MODULES = {"cython_dual": "manyduals.pyx", "cython_trees": "treesums.pyx"}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Folders of the modules, compiled without the time that optimising takes."""
    there = [name for name in MODULES if (EXAMPLES / name).is_dir()]
    folders = {name: tmp_path_factory.mktemp(name) for name in ("sums", *there)}
    (folders["sums"] / "sums.pyx").write_text(SUMS)
    (folders["sums"] / "setup.py").write_text(SETUP)
    for package in there:
        for name in ("setup.py", MODULES[package]):
            shutil.copy(EXAMPLES / package / name, folders[package])
    run("-c", BUILD, *folders.values(), env={"CFLAGS": "-O0"})
    return folders


def example(built, package):
    """Folder of an example."""
    if package not in built:
        pytest.skip("the examples are not beside the tests")
    return str(built[package])


def test_another_module_calls_the_dual_without_the_gil(built, rng, tmp_path):
    folder = example(built, "cython_dual")
    machines, n = 5, 37
    X = rng.normal(size=(machines, n, 3))
    y = np.where(X[:, :, 0] + rng.normal(size=(machines, n)) > 0, 1.0, -1.0)
    y[:, :2] = 1.0, -1.0
    K = np.exp(-0.5 * ((X[:, :, None] - X[:, None]) ** 2).sum(-1))
    np.savez(tmp_path / "in.npz", K=K, y=y)
    code = (
        "import sys, numpy as np\n"
        f"sys.path.insert(0, {folder!r})\n"
        "from manyduals import solve_many\n"
        "from maxent.discrimination import ExponentialMargin\n"
        f"data = np.load({str(tmp_path / 'in.npz')!r})\n"
        "lam, bias, gap = solve_many(ExponentialMargin(8.0), data['K'], data['y'])\n"
        f"np.savez({str(tmp_path / 'out.npz')!r}, lam=lam, bias=bias, gap=gap)\n"
    )
    run("-c", code)
    out = np.load(tmp_path / "out.npz")
    for k in range(machines):
        ours = solve_dual(K[k], y[k], ExponentialMargin(8.0), tol=1e-10)
        np.testing.assert_allclose(out["lam"][k], ours.lam, atol=2e-3)
        assert out["bias"][k] == pytest.approx(ours.bias, abs=2e-3)
        assert 0 <= out["gap"][k] < 1e-4


def test_another_module_sums_over_trees_without_the_gil(built, rng, tmp_path):
    folder = example(built, "cython_trees")
    X = rng.integers(0, 3, (4, 90, 7))
    X[:, :, 5] = np.where(rng.random((4, 90)) < 0.5, X[:, :, 2], X[:, :, 5])
    codes = np.ascontiguousarray(X.swapaxes(1, 2), dtype=np.uint16)
    np.save(tmp_path / "codes.npy", codes)
    code = (
        "import sys, numpy as np\n"
        f"sys.path.insert(0, {folder!r})\n"
        "from treesums import edge_probabilities\n"
        f"codes = np.load({str(tmp_path / 'codes.npy')!r})\n"
        "log_z, prob = edge_probabilities(codes, 3)\n"
        f"np.savez({str(tmp_path / 'out.npz')!r}, log_z=log_z, prob=prob)\n"
    )
    run("-c", code)
    out = np.load(tmp_path / "out.npz")
    for k in range(4):
        _, information = chow_liu_tree(X[k], n_categories=3, return_information=True)
        weights = 90 * information
        np.fill_diagonal(weights, -np.inf)
        log_z, prob = spanning_tree_log_partition(weights, marginals=True)
        assert out["log_z"][k] == pytest.approx(log_z, rel=1e-12)
        np.testing.assert_allclose(out["prob"][k], prob, rtol=1e-9)


SUMS = """# cython: language_level=3
from libc.stdlib cimport free, malloc
from maxent.cython.chain cimport aligned, forward_one, mx_chain
from maxent.cython.chain_pairs cimport MX_CHAIN_LANES, kernel_lanes, mx_chain_pairs
from maxent.cython.dual_rows cimport DualRow, row_upper
from maxent.cython.potentials cimport Potential, unpack_potential
from maxent.cython.statespace cimport filter_scratch
from maxent.cython.system_pairs cimport pair_scratch


def log_likelihood(const double[::1] start, const double[:, ::1] wide,
                   const double[:, ::1] emission, const Py_ssize_t[::1] x):
    cdef mx_chain m
    cdef double out
    cdef double* memory = <double*>malloc((2 * wide.shape[0] + 8) * sizeof(double))
    m.states, m.width, m.sparse, m.own_table = start.shape[0], wide.shape[0], 0, NULL
    m.start, m.wide, m.table = &start[0], &wide[0, 0], &emission[0, 0]
    lost = forward_one(&m, &x[0], x.shape[0], 0, aligned(memory), NULL, &out)
    free(memory)
    return out, lost


def log_kernel(double x, double psi):
    cdef mx_chain_pairs p
    cdef double one = 1., least[MX_CHAIN_LANES], scratch[2 * MX_CHAIN_LANES]
    cdef double X[MX_CHAIN_LANES], k[MX_CHAIN_LANES], Psi[MX_CHAIN_LANES]
    cdef unsigned char tiny[MX_CHAIN_LANES]
    cdef int lost[MX_CHAIN_LANES], i
    for i in range(MX_CHAIN_LANES):
        X[i], Psi[i], least[i], tiny[i] = x, psi, 1., 0
    p.s, p.s2, p.steps, p.first, p.sparse, p.end = 1, 1, 0, 0, 0, NULL
    p.trans, p.psi, p.trans2, p.least, p.tiny = &one, Psi, least, least, tiny
    kernel_lanes(&p, X, scratch, k, lost)
    return k[0]


def sizes(margin):
    cdef Potential p = unpack_potential(margin.core_spec)
    cdef DualRow row
    row.weight, row.rate = 1., 3.
    return filter_scratch(2, 1), pair_scratch(2, 3, 1), row_upper(&p, &row)
"""
SETUP = """
import maxent
from Cython.Build import cythonize
from setuptools import Extension, setup
sums = Extension("sums", ["sums.pyx"], include_dirs=[maxent.get_include()])
setup(name="sums", ext_modules=cythonize([sums], language_level=3))
"""
ASKED = """
import sys; sys.path.insert(0, {folder!r})
import numpy as np, sums
from maxent.discrimination import ExponentialMargin
given = np.load("in.npz")
found, lost = sums.log_likelihood(*(given[k] for k in ("start", "wide", "prob", "x")))
assert not lost and abs(found - given["expected"]) < 1e-12 * abs(found)
assert abs(sums.log_kernel(0.5, 0.25) - np.log(0.125)) < 1e-14
states, pairs, most = sums.sizes(ExponentialMargin(3.0))
assert states > 0 and pairs > 0 and most == 3.0
"""


def test_functions_behind_headers_are_linked(built, tmp_path):
    model = CategoricalHMM(
        [0.6, 0.4], [[0.9, 0.1], [0.3, 0.7]], [[0.5, 0.2, 0.3], [0.1, 0.8, 0.1]]
    )
    x = np.array([0, 1, 1, 2, 0, 1], dtype=np.intp)
    wide = np.zeros((8, 8))
    wide[:2, :2] = model.transition
    prob = np.ascontiguousarray(model.emission.prob.T)
    expected = model.log_likelihood([x])[0]
    arrays = {"start": model.start, "wide": wide, "prob": prob}
    np.savez(tmp_path / "in.npz", x=x, expected=expected, **arrays)
    folder = str(built["sums"])
    run("-c", ASKED.format(folder=folder), cwd=tmp_path)
