"""Memory that is given back and taken again."""

import os

import numpy as np
import pytest

from maxent import MEDClassifier
from maxent._support import arenas
from maxent._support.arenas import Arena

LARGE = (2500, 2512)

lazily = pytest.mark.skipif(not arenas._lazily, reason="no lazily freed memory here")


@pytest.fixture(autouse=True)
def no_spare():
    arenas._spare.clear()
    yield
    arenas._spare.clear()


@pytest.mark.parametrize("shape", [(3, 16), LARGE])
def test_fresh_memory_is_a_matrix_of_zeros(shape):
    matrix = Arena(shape).matrix
    assert matrix.shape == shape
    assert matrix.dtype == np.float32
    assert not matrix.any()
    matrix[-1, -1] = 1.0


@lazily
def test_what_is_given_back_serves_again_and_is_finite():
    first = Arena(LARGE)
    first.matrix[:] = 7.0
    address = first.matrix.ctypes.data
    first.give_back()
    assert first.matrix is None
    again = Arena((2000, 2304))  # smaller ones fit
    assert again.matrix.ctypes.data == address
    assert np.isin(again.matrix, [0.0, 7.0]).all()
    other = Arena(LARGE)  # two at a time are two blocks
    assert other.matrix.ctypes.data != address


@lazily
def test_few_blocks_are_kept_and_the_largest_ones():
    sizes = [2100, 2200, 2300, 2400]
    held = [Arena((n, n)) for n in sizes]
    for arena in held:
        arena.give_back()
    assert [len(block) for block in arenas._spare] == [4 * n * n for n in sizes[-2:]]


@lazily
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forked processes here")
def test_forked_processes_do_not_share_memory():
    first = Arena(LARGE)
    first.matrix[:] = 1.0
    first.give_back()
    held, kept = Arena(LARGE), Arena(LARGE)
    held.matrix[:] = kept.matrix[:] = 2.0
    kept.give_back()
    child = os.fork()
    if child == 0:
        held.matrix[:] = 3.0
        clean = not arenas._spare and not Arena(LARGE).matrix.any()
        os._exit(0 if clean else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert (held.matrix == 2.0).all() and (Arena(LARGE).matrix == 2.0).all()


def test_small_ones_are_not_kept():
    Arena((10, 16)).give_back()
    assert not arenas._spare


@lazily
@pytest.mark.parametrize("bias", ["flat", 1.0, None])
@pytest.mark.parametrize("d", [2, 70])
def test_fits_in_used_memory_have_the_same_bits(d, bias, rng):
    X = rng.normal(size=(2400, d))
    y = X[:, 0] + 0.5 * rng.normal(size=2400) > 0
    model = MEDClassifier(C=10.0, bias=bias)
    fresh = model.fit(X, y).dual_coef_
    assert arenas._spare
    for block in arenas._spare:  # as another fit may leave it
        np.frombuffer(block, dtype=np.float32)[:] = 1e30
    again = model.fit(X, y).dual_coef_
    np.testing.assert_array_equal(fresh, again)
    assert model.converged_
