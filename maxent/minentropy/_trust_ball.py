"""The trust region of the paper's algorithm 2, as a value."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from maxent._support import validation as v


@dataclass(frozen=True)
class TrustBall:
    """Algorithm 2 of Miller et al. with its constants, as a `solver`.

    The linearised problem is solved in ``|w - w_t|^2 <= mu``. mu begins at `largest`
    and is divided by `factor` until the objective falls by epsilon; then it begins
    anew. What the paper leaves open: epsilon is tol times the sum of the weights of the
    slacks; where mu gets below 1e-10 at a point that is not stationary, epsilon is
    divided by ten, three times at most.

    Parameters
    ----------
    largest : float, default=100.0
        mu_max > 0, of a squared distance of weights.
    factor : float, default=4.0
        lambda > 1.

    Raises
    ------
    ValueError
        For parameters outside their domains.

    References
    ----------
    Miller, Kumar, Packer, Goodman & Koller (2012), Max-margin min-entropy models,
    algorithm 2.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.minentropy import M3EClassifier, TrustBall
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.standard_normal((40, 5, 2)), np.arange(40) % 2
    >>> X[y == 1, 3] += 4.0
    >>> model = M3EClassifier(1.0, 50.0, init="zero", solver=TrustBall(10.0, 2.0))
    >>> model.fit(X, y).score(X, y) > 0.9
    True
    """

    largest: float = 100.0
    factor: float = 4.0

    def __post_init__(self) -> None:
        largest = v.check_positive("largest", self.largest)
        factor = v.check_number("factor", self.factor)
        if not 1.0 < factor < float("inf"):
            raise v.not_this("factor", self.factor, "a finite number > 1")
        object.__setattr__(self, "largest", largest)
        object.__setattr__(self, "factor", factor)

    def get_spec(self) -> dict[str, Any]:
        """Return the constructor's arguments.

        Returns
        -------
        dict
            Of arrays and numbers, as model files keep them.
        """
        return asdict(self)
