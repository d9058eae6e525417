"""All pairs of two batches: relative entropies and affinities.

With natural parameters eta, cumulant A and a constant base measure,

    KL(p || q)          = (eta - eta') . E_p T - A(eta) + A(eta')
    log int p^rho q^rho = A(rho (eta + eta')) - rho A(eta) - rho A(eta').

Families of which more is known, or whose base measure is not constant, put their own
formulas in the place of `_kl` and `_affinity`.

Source: Jebara, Kondor & Howard (2004), section 3, with the corrections on the errata
page of the documentation.
"""

from __future__ import annotations

from typing import Self

import numpy as np

from maxent._support import validation as v
from maxent._support.typing import FloatArrayOrScalar
from maxent._support.underflow import allow_underflow
from maxent.families._batch import Batch
from maxent.families._pairs import inner, mirrored, paired, tiles


class Comparisons(Batch):
    """Comparisons of two batches of one family; part of `ExponentialFamily`."""

    @allow_underflow
    def kl(self, other: Self) -> FloatArrayOrScalar:
        """Relative entropy KL(p || q) of all pairs.

        Parameters
        ----------
        other : value of the same class
            The distributions q.

        Returns
        -------
        ndarray (batch, batch of other) or float
            In nats; +inf where p has mass outside the support of q.

        Raises
        ------
        TypeError
            If the other batch is of another family.
        ValueError
            If it lives in another space.
        """
        self._check_comparable(other)
        P, Q = self._flat(), other._flat()
        out = np.maximum(P._kl(Q), 0.0)  # rounding may leave it just below zero
        return out.reshape(self.batch_shape + other.batch_shape)[()]

    @allow_underflow
    def log_affinity(self, other: Self, rho: float) -> FloatArrayOrScalar:
        """Log-affinity, log of the integral of p^rho q^rho, of all pairs.

        Parameters
        ----------
        other : value of the same class
            The distributions q; the batch itself gives an exactly symmetric matrix.
        rho : float
            Power, > 0: 1/2 is the Bhattacharyya affinity, 1 the expected likelihood.

        Returns
        -------
        ndarray (batch, batch of other) or float
            +inf where the integral diverges (see :meth:`affinity_range`), -inf where
            the supports do not meet.

        Raises
        ------
        TypeError
            If the other batch is of another family.
        ValueError
            If it lives in another space, or the family has no formula for this rho.

        References
        ----------
        Jebara, Kondor & Howard (2004), Probability product kernels, section 3.
        """
        rho = v.check_positive("rho", rho)
        self._check_comparable(other)
        P = self._flat()
        Q = P if other is self else other._flat()
        L = P._affinity(Q, rho)
        if Q is P:
            L = mirrored(L)
        # adding zero: no -0.0 on the diagonal
        return (L.reshape(self.batch_shape + other.batch_shape) + 0.0)[()]

    @allow_underflow
    def affinity_range(self) -> tuple[FloatArrayOrScalar, FloatArrayOrScalar]:
        """Open interval of powers for which the affinity with itself is finite.

        Returns
        -------
        low, high : ndarray or float
            Of the batch shape. Every rho between them makes ``p^rho`` square
            integrable, so that affinities of all pairs are finite.
        """
        low, high = self._affinity_range()
        low = np.broadcast_to(low, self.batch_shape)[()]
        return low, np.broadcast_to(high, self.batch_shape)[()]

    def _check_comparable(self, other):
        if type(other) is not type(self):
            raise TypeError(
                f"cannot compare {type(self).__name__} with {v.shown(type(other))}; "
                "both must be of one family."
            )
        mine, theirs = self._space(), other._space()
        if mine != theirs:
            raise ValueError(
                f"the distributions are over different spaces: {mine} and {theirs}."
            )

    # -- what a family improves --------------------------------------------------------
    def _space(self):
        """Parameters that two batches must share to be compared."""
        return {"event_shape": self.event_shape, **self._fixed()}

    def _kl(self, other):
        own = paired(self.mean_parameters, self.natural_parameters)
        cross = inner(self.mean_parameters, other.natural_parameters).T
        own = (own - self._own_cumulant)[:, None]
        return own - cross + other._own_cumulant

    def _affinity(self, other, rho):
        """A(rho (eta + eta')) - rho A(eta) - rho A(eta'): h constant, or rho = 1/2."""
        eta, eta_other = rho * self.natural_parameters, rho * other.natural_parameters
        A, A_other = rho * self._own_cumulant, rho * other._own_cumulant
        out = np.empty((len(eta), len(eta_other)))
        for rows in tiles(len(eta), eta_other.size):
            power = self._cumulant(eta[rows, None] + eta_other)
            out[rows] = power - (A[rows, None] + A_other)
        return out

    def _affinity_range(self):
        return 0.0, np.inf
