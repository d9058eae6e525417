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

EXAMPLES = pathlib.Path(__file__).resolve().parents[1] / "examples"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Builds an example in a folder of its own."""

    def build(package, module):
        if not (EXAMPLES / package).is_dir():
            pytest.skip("the examples are not beside the tests")
        folder = tmp_path_factory.mktemp(package)
        for name in ("setup.py", module):
            shutil.copy(EXAMPLES / package / name, folder)
        run("setup.py", "-q", "build_ext", "--inplace", cwd=folder, timeout=280)
        return str(folder)

    return build


def test_another_module_calls_the_dual_without_the_gil(built, rng, tmp_path):
    folder = built("cython_dual", "manyduals.pyx")
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
    folder = built("cython_trees", "treesums.pyx")
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
