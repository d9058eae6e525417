"""Gram matrices in tiles, against all at once."""

import numpy as np
import pytest
from models.sequence_cases import random_hmm

from maxent.families import Gaussian, Poisson
from maxent.kernels import SharedSample, product_kernel, product_kernel_tiles
from maxent.models import SwitchingLDS

da = pytest.importorskip("dask.array")


def gaussians(rng, n):
    A = rng.normal(size=(n, 2, 2))
    return Gaussian(rng.normal(size=(n, 2)), A @ A.swapaxes(1, 2) + np.eye(2))


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("tile", [1, 3, 4, 10])
def test_tiles_of_a_family(tile, normalize, rng):
    P, Q = gaussians(rng, 7), gaussians(rng, 4)
    options = {"rho": 0.8, "normalize": normalize}
    one = product_kernel_tiles(P, tile=tile, **options)
    np.testing.assert_allclose(one, product_kernel(P, **options), rtol=1e-12)
    np.testing.assert_array_equal(one, one.T)
    two = product_kernel_tiles(P, Q, tile=tile, **options)
    np.testing.assert_allclose(two, product_kernel(P, Q, **options), rtol=1e-12)


def test_tiles_of_sequence_models_on_workers_and_in_dask(rng):
    models = [random_hmm(rng, 2, 3) for _ in range(5)]
    known = product_kernel(models, horizon=6, log=True)
    options = {"tile": 2, "horizon": 6, "log": True}
    local = product_kernel_tiles(models, **options)
    np.testing.assert_allclose(local, known, rtol=1e-12)
    spread = product_kernel_tiles(models, n_jobs=2, **options)
    np.testing.assert_array_equal(spread, local)
    lazy = product_kernel_tiles(models, out="dask", **options)
    assert isinstance(lazy, da.Array) and lazy.chunks == ((2, 2, 1), (2, 2, 1))
    np.testing.assert_array_equal(lazy.compute(scheduler="synchronous"), local)


def test_tiles_to_a_file(tmp_path, rng):
    P = gaussians(rng, 5)
    K = product_kernel_tiles(P, tile=2, out=tmp_path / "K.npy")
    assert isinstance(K, np.memmap)
    np.testing.assert_array_equal(K, product_kernel_tiles(P, tile=2))
    assert [p.name for p in tmp_path.iterdir()] == ["K.npy"]


def test_a_fit_that_ends_early_leaves_no_file(tmp_path, rng, monkeypatch):
    def fail(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("maxent.kernels.tiles._tile", fail)
    with pytest.raises(KeyboardInterrupt):
        product_kernel_tiles(gaussians(rng, 5), tile=2, out=tmp_path / "K.npy")
    assert not list(tmp_path.iterdir())


def test_what_tiles_cannot_do_is_refused(rng):
    P = Poisson([1.0, 2.0])
    with pytest.raises(ValueError, match=r"rho=\[0.5, 1.0\] must be one number"):
        product_kernel_tiles(P, rho=[0.5, 1.0])
    with pytest.raises(ValueError, match="with sample=SharedSample"):
        product_kernel_tiles(P, method="shared_sample")
    with pytest.raises(ValueError, match=r"must end in '\.npy'"):
        product_kernel_tiles(P, out="kernel.txt")
    with pytest.raises(ValueError, match="tile=0"):
        product_kernel_tiles(P, tile=0)
    with pytest.raises(ValueError, match="rho"):
        product_kernel_tiles(P, rho=-1.0)


def test_paths_of_switching_systems_fit_tiles_together():
    one = np.eye(1)
    systems = [
        SwitchingLDS(
            [0.5, 0.5],
            np.eye(2) * 0.8 + 0.1,
            np.array([[[a]], [[-a]]]),
            np.full((2, 1, 1), 0.2),
            one,
            one,
            [0.0],
            one,
        )
        for a in (0.1, 0.5, 0.9)
    ]
    K = product_kernel_tiles(systems, tile=2, horizon=3, n_paths=4)
    expected = product_kernel(systems, horizon=3, n_paths=4)
    np.testing.assert_allclose(K, expected, rtol=1e-12)


def test_a_shared_sample_fits_tiles_together(rng):
    P = Poisson(rng.uniform(1.0, 4.0, size=5))
    sample = SharedSample(P, n_samples=200, random_state=0)
    options = {"method": "shared_sample", "sample": sample}
    K = product_kernel_tiles(P, tile=2, **options)
    np.testing.assert_allclose(K, product_kernel(P, **options), rtol=1e-10)
