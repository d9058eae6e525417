"""Members side by side in vectors."""

import numpy as np
import pytest

from maxent.models.chains._many_chains import LANES, in_vectors, out_of_vectors


@pytest.mark.parametrize("n", [1, 7, 8, 17])
@pytest.mark.parametrize("one", [False, True])
def test_vectors_hold_every_member(n, one, rng):
    array = rng.normal(size=(n, 3, 2))
    if one:  # the same for all
        array = np.broadcast_to(array[0], array.shape)
    found = in_vectors(array)
    assert found.shape == (-(-n // LANES), 3, 2, LANES)
    assert found.flags.c_contiguous and found.ctypes.data % 64 == 0
    np.testing.assert_array_equal(out_of_vectors(found, n), array)
