"""L-BFGS on a smooth loss of decision values plus the squared norm of the machine.

    F(a, b) = a' K a / 2 + precision b^2 / 2 + L(K a + b)

Several machines with a loss of all their decision values are one, whose a and f have
the outputs of the first row, then those of the second, and which has a b for each.

In the geometry of the kernel, where |a|^2 = a' K a, the gradient is a + L'(f): it needs
one product with K, and so does an iteration, as K times every other vector is known. L
need not be convex. F falls in every iteration.

Source: Nocedal & Wright (2006), Numerical Optimization, section 7.2; the matrix form of
the inverse Hessian is that of Byrd, Nocedal & Schnabel (1994).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.optimize import line_search

Array = NDArray[np.float64]

_PAIRS = 30
_FLAT = 1e-12  # cosine below which a pair of changes tells nothing of the curvature
_LEAST = 1e-290  # of a product, beside which sums underflow


@dataclass
class KernelPoint:
    """A machine f = K a + b, and the derivative of the loss there.

    Attributes
    ----------
    a, Ka : ndarray (n,)
    b : float, or ndarray (outputs,) of several
    slope : ndarray (n,)
        L'(f); -slope = a at a stationary point.
    value : float
        F.
    n_iter : int
    """

    a: Array
    Ka: Array
    b: float | Array
    slope: Array
    value: float = np.inf
    n_iter: int = 0


class KernelDescent:
    """The problem: products with K, the loss, and the bias.

    Parameters
    ----------
    product : callable
        K s of s (n,).
    loss : callable
        L(f) and L'(f) (n,) of decision values f (n,).
    precision : float or None
        That of the bias; 0 for a free one, None for no bias.
    max_change : float
        Largest change of a decision value in an iteration.
    outputs : int
        Machines, and decision values of a row.
    """

    def __init__(
        self,
        product: Callable[[Array], Array],
        loss: Callable[[Array], tuple[float, Array]],
        precision: float | None,
        max_change: float = np.inf,
        outputs: int = 1,
    ):
        self.outputs = outputs
        self.product, self.loss, self.max_change = product, loss, max_change
        self.biased, self.precision = precision is not None, precision or 0.0

    def run(
        self,
        a: Array,
        Ka: Array,
        b: float | Array,
        *,
        tol: float,
        max_iter: int,
        callback: Callable[[int, float, float], bool] | None = None,
    ) -> KernelPoint:
        """The last point, from a start.

        Parameters
        ----------
        a, Ka : ndarray (n,)
        b : float, or ndarray (outputs,) of several
        tol : float
            Ends where the squared norm of the gradient is tol * (1 + |F|) or less.
        max_iter : int
        callback : callable(n_iter, F, squared norm), optional
            True ends the iterations.
        """
        n, m = len(a), self.outputs
        x = np.concatenate([a, Ka, np.atleast_1d(b)])
        value, slope = self._risk(x)
        g, pairs = self._gradient(x, slope), _Pairs(2 * n + m, m)
        for n_iter in range(max_iter + 1):
            size = max(_inner(g, g, m), 0.0)  # not below zero by rounding
            stop = callback is not None and n_iter and callback(n_iter, value, size)
            if stop or size <= tol * (1.0 + abs(value)) or n_iter == max_iter:
                break
            d = pairs.direction(g)
            fall = _inner(g, d, m)
            if not fall < 0:
                pairs, d, fall = _Pairs(2 * n + m, m), -g, -size
            longest = self.max_change / max(np.abs(self._f(d)).max(), 1e-300)
            searched = self._searched(x, d, value, fall, longest)
            if searched is None:
                break
            new, value, slope = searched
            new_g = self._gradient(new, slope)
            pairs.add(new - x, new_g - g)
            x, g = new, new_g
        b = float(x[-1]) if m == 1 else x[-m:]
        return KernelPoint(x[:n], x[n:-m], b, slope, value, n_iter)

    def _f(self, x):
        """Decision values of x = (a, K a, b), or their changes."""
        n, m = (len(x) - self.outputs) // 2, self.outputs
        return (x[n:-m].reshape(-1, m) + x[-m:]).ravel()

    def _risk(self, x):
        """F and L' at x = (a, K a, b)."""
        n, m = (len(x) - self.outputs) // 2, self.outputs
        value, slope = self.loss(self._f(x))
        value += 0.5 * float(x[:n] @ x[n:-m])
        value += 0.5 * self.precision * float(x[-m:] @ x[-m:])
        return float(value), slope

    def _gradient(self, x, slope):
        n, m = len(slope), self.outputs
        g = np.zeros_like(x)
        g[:n] = x[:n] + slope
        g[n:-m] = x[n:-m] + self.product(slope)
        if self.biased:
            g[-m:] = slope.reshape(-1, m).sum(axis=0) + self.precision * x[-m:]
        return g

    def _searched(self, x, d, value, fall, longest):
        """Point, F and L' of a step that meets Wolfe's conditions; None without one.

        Where the longest step does not, it is halved until it lowers F enough.
        """
        m, points = self.outputs, {}
        n, df = (len(x) - m) // 2, self._f(d)

        def at(t):
            if t not in points:
                point = x + t * d
                points[t] = point, *self._risk(point)
            return points[t]

        def derivative(t):
            point, _, slope = at(t)
            from_norm = float(point[:n] @ d[n:-m])
            from_norm += self.precision * float(point[-m:] @ d[-m:])
            return float(slope @ df) + from_norm

        t = min(1.0, longest)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            share = line_search(
                lambda u: at(t * float(u[0]))[1],
                lambda u: np.array([t * derivative(t * float(u[0]))]),
                np.zeros(1),
                np.ones(1),
                gfk=np.array([t * fall]),
                old_fval=value,
                amax=longest / t,
            )[0]
        if share is not None:
            return at(t * float(share))
        for _ in range(60):
            if at(t)[1] <= value + 1e-4 * t * fall:
                return at(t)
            t *= 0.5
        return None


def _inner(x, y, m=1):
    """Inner product of (a, K a, b) and another such vector, of m biases."""
    n = (len(x) - m) // 2
    return float(x[:n] @ y[n:-m]) + float(x[-m:] @ y[-m:])


class _Pairs:
    """Changes S of points and Y of gradients, and the inverse Hessian they make."""

    def __init__(self, size, m=1):
        self.m = m
        self.S, self.Y = np.empty((_PAIRS, size)), np.empty((_PAIRS, size))
        self.SY, self.YY = np.zeros((_PAIRS, _PAIRS)), np.zeros((_PAIRS, _PAIRS))
        self.order = np.empty(0, dtype=np.intp)  # places, the oldest first

    @property
    def count(self):
        return len(self.order)

    def add(self, s, y):
        """Keep a pair with curvature; of many, in the place of the oldest one."""
        sy, yy = _inner(s, y, self.m), _inner(y, y, self.m)
        if not sy > max(_FLAT * yy, _LEAST):
            return
        if self.count < _PAIRS:
            place = self.count
        else:
            place, self.order = self.order[0], self.order[1:]
        self.order = np.append(self.order, place)
        self.S[place], self.Y[place] = s, y
        filled = self.count
        self.SY[:filled, place] = _products(self.S[:filled], y, self.m)
        self.SY[place, :filled] = _products(self.Y[:filled], s, self.m)
        self.SY[place, place] = sy
        self.YY[:filled, place] = _products(self.Y[:filled], y, self.m)
        self.YY[place, :filled] = self.YY[:filled, place]

    def direction(self, g):
        """Minus the inverse Hessian times g."""
        m, order = self.count, self.order
        if not m:
            return -g
        S, Y = self.S[:m], self.Y[:m]
        R = np.triu(self.SY[np.ix_(order, order)])
        YY, D = self.YY[np.ix_(order, order)], np.diagonal(R)
        scale = D[-1] / YY[-1, -1]
        sg, yg = (_products(A, g, self.m)[order] for A in (S, Y))
        p = solve_triangular(R, sg, check_finite=False)
        rest = D * p + scale * (YY @ p - yg)
        q = solve_triangular(R, rest, trans="T", check_finite=False)
        along_s, along_y = np.empty(m), np.empty(m)
        along_s[order], along_y[order] = q, scale * p
        return along_y @ Y - along_s @ S - scale * g


def _products(rows, y, m):
    """Inner products of rows with y."""
    n = (len(y) - m) // 2
    return rows[:, :n] @ y[n:-m] + rows[:, -m:] @ y[-m:]
