"""Quasi-Newton steps: what they do where a point has no coordinates."""

import numpy as np
import pytest

from maxent.models._quasi_newton import QuasiNewton


class Cone:
    """Coordinates log x of positive x; zero has none, as a singular covariance."""

    def pack(self, point):
        if not point > 0:
            raise np.linalg.LinAlgError("not positive definite")
        return np.log([point])

    def unpack(self, vector):
        return float(np.exp(vector[0]))


class Falling:
    """Objective -x, by which zero is best."""

    def slope(self, point):
        return -point, Cone(), np.array([-point])

    def reach(self, old, new):
        return 1.0

    def within(self, old, new):
        return new


@pytest.mark.parametrize("known", [True, False])
def test_an_em_step_to_the_boundary_is_taken_as_it_is(known):
    way = QuasiNewton(Falling(), em_steps=1)
    em = {8.0: 2.0, 2.0: 0.0, 0.0: 0.0}

    def step(point):
        return -point, em[point]

    first, _ = way(step, 8.0, -8.0, None)
    assert first == 2.0
    second, (value, _) = way(step, first, -first, 0.0 if known else None)
    assert second == 0.0 and value == 0.0
