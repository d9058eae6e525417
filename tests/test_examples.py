"""The example package of compiled code: built against the installed maxent, and run."""

import pathlib
import shutil

import numpy as np
import pytest
from processes import run

from maxent.discrimination import ExponentialMargin, solve_dual

SOURCE = pathlib.Path(__file__).resolve().parents[1] / "examples" / "cython_dual"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    if not SOURCE.is_dir():
        pytest.skip("the examples are not beside the tests")
    folder = tmp_path_factory.mktemp("cython_dual")
    for name in ("setup.py", "manyduals.pyx"):
        shutil.copy(SOURCE / name, folder)
    run("setup.py", "-q", "build_ext", "--inplace", cwd=folder, timeout=280)
    return folder


def test_another_module_calls_the_dual_without_the_gil(built, rng, tmp_path):
    machines, n = 5, 37
    X = rng.normal(size=(machines, n, 3))
    y = np.where(X[:, :, 0] + rng.normal(size=(machines, n)) > 0, 1.0, -1.0)
    y[:, :2] = 1.0, -1.0
    K = np.exp(-0.5 * ((X[:, :, None] - X[:, None]) ** 2).sum(-1))
    np.savez(tmp_path / "in.npz", K=K, y=y)
    code = (
        "import sys, numpy as np\n"
        f"sys.path.insert(0, {str(built)!r})\n"
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
