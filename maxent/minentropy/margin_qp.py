"""The quadratic program of margin learning over outputs that can be listed.

    min  |w|^2 / 2 + sum_i c_i max(0, max_r (ell_r - D_r . w)),   r the rows of group i
         [+ prox / 2 |w - center|^2]   or   subject to |w - center| <= radius

Its dual maximises ``sum a ell - |v|^2 / 2``, v = D' a, over a >= 0 whose sum in group i
is at most c_i. With w near (v + prox center) / (1 + prox)

    gap = (1 + prox) / 2 |w - (v + prox center) / (1 + prox)|^2
          + sum_i [c_i max(0, max_r m_r) - sum_r a_r m_r],   m = ell - D w.

Source: Crammer & Singer (2001); Joachims, Finley & Yu (2009), Cutting-plane training of
structural SVMs; Mehrotra (1992) for the interior point.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.linalg import lapack, solve_triangular

from maxent._core import margin_ascent as _core
from maxent._support import validation as v
from maxent._support.results import DualResult, Monitor, Status
from maxent._support.threads import single_threaded_blas
from maxent._support.typing import Callback, FloatArray
from maxent._support.underflow import allow_underflow
from maxent._support.validation import user_stacklevel
from maxent.minentropy._margin_dual import Groups, Pair, solve_interior

QPSolver = Literal["auto", "interior", "ascent"]
_WIDEST = 1500  # rows or columns, whichever are fewer, that an interior point takes
_MOST_ENTRIES = 2.5e8
_LOOK = 5  # passes between two certificates
_QUIET = 0.1  # share of the mean violation below which a group is passed over
_BALLS = 60  # proximal problems at most for one ball


@dataclass
class MarginResult:
    """Solution of a margin problem, with its certificate.

    Attributes
    ----------
    w : ndarray (d,)
        Weights.
    objective : float
        The primal objective at `w`, proximal term included.
    gap : float
        Objective less dual objective at `dual`: no weights have an objective below
        ``objective - gap``.
    dual : ndarray
        Multipliers a of the rows, in the shape of `ell`.
    n_iter : int
        Interior-point steps, or passes over the groups.
    status : Status
        ``"converged"`` if the gap is within the tolerance.
    history : list of tuple (int, float, float)
        Iterations done, dual objective and gap, in units of the solver; empty with a
        `radius`.
    """

    w: FloatArray
    objective: float
    gap: float
    dual: FloatArray
    n_iter: int
    status: Status
    history: list[tuple[int, float, float]] = field(default_factory=list)

    @property
    def converged(self) -> bool:
        """True if the tolerance is met."""
        return self.status is Status.CONVERGED


@allow_underflow
def solve_margin_qp(
    D: Any,
    ell: ArrayLike,
    c: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    prox_center: ArrayLike | None = None,
    prox: float = 0.0,
    radius: float | None = None,
    solver: QPSolver = "auto",
    tol: float = 1e-8,
    max_iter: int | None = None,
    callback: Callback | None = None,
) -> MarginResult:
    """Solve the quadratic program of margin learning over listed outputs.

    ``min |w|^2 / 2 + sum_i c_i max(0, max_r (ell_r - D_r . w))`` with the rows r of
    sample i. One row a sample is the linear support vector machine without intercept,
    rows for all wrong classes the machine of Crammer and Singer.

    Parameters
    ----------
    D : array-like (n, d), (n, m, d), or (rows, d), or sparse (rows, d)
        Features of the right output less those of another one: one row for each
        sample, m rows, or as many as `groups` says.
    ell : array-like (n,), (n, m) or (rows,)
        Losses the margins have to reach; -inf leaves a row out.
    c : float or array-like (n,)
        Weights >= 0 of the samples' slacks.
    groups : array-like of int (rows,), optional
        Sample 0, 1, ... of each row, in increasing order.
    prox_center : array-like (d,), optional
        Centre of the proximal term or of the ball, zero by default.
    prox : float, default=0.0
        Factor nu >= 0 of the term ``nu / 2 |w - prox_center|^2``.
    radius : float, optional
        Keep w in the ball of this radius > 0 about `prox_center`.
    solver : {"auto", "interior", "ascent"}, default="auto"
        Interior point, 10-25 steps of O(rows d^2) at any c; or pairwise dual ascent,
        for sparse rows with many columns. "auto" takes the interior point up to
        1500 columns or rows.
    tol : float, default=1e-8
        Gap, as a share of the objective, that ends the solution.
    max_iter : int, optional
        Bound on the steps (200) or passes (2000).
    callback : callable(n_iter, objective, gap), optional
        Called at each certification, in units of the solver; True ends the solution.

    Returns
    -------
    MarginResult
        Weights, objective, gap and multipliers.

    Raises
    ------
    ValueError
        For shapes that do not fit, entries that are not finite, and parameters
        outside their domains.

    Warns
    -----
    ConvergenceWarning
        If the gap is above the tolerance.

    See Also
    --------
    maxent.discrimination.solve_linear_dual : Smooth losses and a bias, two classes.

    References
    ----------
    Crammer & Singer (2001), On the algorithmic implementation of multiclass
    kernel-based vector machines. Joachims, Finley & Yu (2009).

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.minentropy import solve_margin_qp
    >>> X, y = np.array([[1.0, 2.0], [2.0, 1.0], [-1.0, 0.0]]), np.array([1, 1, -1])
    >>> print(solve_margin_qp(y[:, None] * X, np.ones(3), 1.0).w.round(4))
    [1. 0.]
    """
    problem = MarginProblem.read(D, ell, c, groups)
    center = _center(prox_center, problem.d)
    nu = v.check_nonnegative("prox", prox)
    v.check_choice("solver", solver, ("auto", "interior", "ascent"))
    tol = v.check_positive("tol", tol)
    steps = None if max_iter is None else v.check_count("max_iter", max_iter)
    options = {"solver": solver, "tol": tol, "max_iter": steps, "callback": callback}
    if radius is None:
        result = problem.solve(center, nu, **options)
    else:
        if nu:
            raise ValueError(
                f"prox={nu:g} and radius={v.shown(radius)} cannot both be given; a "
                "ball has its own proximal weight."
            )
        result = problem.solve_ball(
            center, v.check_positive("radius", radius), **options
        )
    if not (result.converged or result.status is Status.STOPPED):
        _warn(result, tol)
    return result


class MarginProblem:
    """A margin problem whose rows are checked and sorted into groups.

    Parameters
    ----------
    D : ndarray or sparse (rows, d)
    ell : ndarray (rows,)
        May hold -inf.
    c : ndarray (n,)
    of_row : ndarray of int (rows,)
        Group of each row, not decreasing.
    shape : tuple
        Shape in which the multipliers are returned.
    """

    def __init__(self, D, ell, c, of_row, shape):
        keep = (ell > -np.inf) & (c[of_row] > 0)
        self.keep = None if keep.all() else keep
        if self.keep is not None:
            D, ell, of_row = D[keep], ell[keep], of_row[keep]
        present, starts, own = np.unique(of_row, return_index=True, return_inverse=True)
        self.D, self.ell, self.shape, self.d = D, ell, shape, D.shape[1]
        self.groups = Groups(starts, own, np.ascontiguousarray(c[present]))

    @classmethod
    def read(cls, D, ell, c, groups):
        """The problem of what a user gives."""
        sparse = sp.issparse(D)
        D = _sparse_rows(D) if sparse else v.as_doubles("D", D)
        ell = v.as_doubles("ell", ell)
        if D.ndim not in (2, 3) or ell.shape != D.shape[:-1]:
            raise ValueError(
                f"D of shape {D.shape} and ell of shape {ell.shape} do not fit; "
                "(n, d) and (n,), or (n, m, d) and (n, m), are needed."
            )
        shape, n = ell.shape, len(ell)
        v.check_entries("D", D, "leave such rows out, or impute their features")
        v.check_range("D", D)
        if not (ell < np.inf).all():  # NaN too
            raise ValueError(
                "ell has entries that are NaN or +inf; losses are finite, or -inf to "
                "leave a row out."
            )
        of_row = np.repeat(np.arange(n), ell[0].size if n else 0)
        if groups is not None:
            of_row = _group_codes(groups, shape)
            n = int(of_row[-1]) + 1 if len(of_row) else 0
        c = np.atleast_1d(v.as_doubles("c", c))
        if c.shape == (1,):
            c = np.full(n, c[0])
        if c.shape != (n,):
            raise ValueError(f"c has shape {c.shape}; one number, or {n}, are needed.")
        if not (np.isfinite(c) & (c >= 0)).all():
            wrong = c[~(np.isfinite(c) & (c >= 0))][0]
            raise ValueError(f"c has the entry {wrong:g}; weights are finite and >= 0.")
        if D.ndim == 3:
            D = D.reshape(-1, D.shape[2])
        return cls(D, ell.ravel(), c, of_row, shape)

    # -- values ----------------------------------------------------------------------
    def loss(self, w):
        """sum c xi at weights w."""
        return self.groups.loss(self.ell - self.D @ w) if len(self.ell) else 0.0

    def _spread(self, a):
        """Multipliers of all rows, those left out with zeros."""
        if self.keep is None:
            return a.reshape(self.shape)
        out = np.zeros(self.shape)
        out.reshape(-1)[self.keep] = a
        return out

    # -- the proximal form -----------------------------------------------------------
    def solve(
        self,
        center,
        nu=0.0,
        *,
        solver="auto",
        tol=1e-8,
        unit=0.0,
        max_iter=None,
        callback=None,
    ):
        """Minimise with the term nu / 2 |w - center|^2.

        Parameters
        ----------
        center : ndarray (d,)
        nu : float
        solver, tol, max_iter, callback
            As for :func:`solve_margin_qp`.
        unit : float
            An objective up to which the gap is compared with `unit` instead.
        """
        q = self.ell - (nu / (1.0 + nu)) * (self.D @ center)
        scale = self._objective_bound(q, nu, unit)
        if not scale > 0:
            pair = Pair(np.zeros(self.d), np.zeros(len(q)), 0.0)
            return self._result(pair, center, nu, 0, Status.CONVERGED, [], tol, unit)
        factor = np.sqrt(scale / (1.0 + nu))
        groups = Groups(self.groups.starts, self.groups.of_row, self.groups.c / scale)
        # objectives are >= 1 in these units, so that tol / 2 * (1 + J) <= tol * J
        options = {"tol": 0.5 * tol, "callback": callback}
        if self._takes_interior(solver):
            options["max_iter"] = max_iter or 200
            with single_threaded_blas():
                Z, basis = _dense_rows(self.D)
                pair, ended = solve_interior(factor * Z, q, groups, **options)
            pair = pair if basis is None else replace(pair, w=basis(pair.w))
        else:
            options["max_iter"] = max_iter or 2000
            rows = sp.csr_array(self.D)
            pair, ended = _solve_ascent(factor * rows, q, groups, **options)
        w = pair.w * np.sqrt(scale * (1.0 + nu))
        pair = Pair(w, groups.clipped(pair.a) * scale, 0.0)
        return self._result(
            pair, center, nu, ended.n_iter, ended.status, ended.history, tol, unit
        )

    def _objective_bound(self, q, nu, unit):
        """A lower bound of the objective: the dual along one ray; 0 if w is known."""
        groups, top = self.groups, self.groups.argmax(q)
        a = np.zeros(len(q))
        a[top] = np.where(q[top] > 0, groups.c, 0.0)
        slope = float(a @ q)
        if not slope > 0:
            return 0.0
        ray = self.D.T @ a
        curvature = float(ray @ ray) / (1.0 + nu)
        t = min(1.0, slope / curvature) if curvature > 0 else 1.0
        return max(t * slope - 0.5 * t * t * curvature, unit)

    def _takes_interior(self, solver):
        if solver != "auto":
            return solver == "interior"
        rows, d = self.D.shape
        entries = rows * min(rows, d) if sp.issparse(self.D) else rows * d
        return min(rows, d) <= _WIDEST and entries <= _MOST_ENTRIES

    def _result(self, pair, center, nu, n_iter, status, history, tol, unit):
        """The certificate in the units of the problem; `pair.w` is v, nearly."""
        a = pair.a
        w = (pair.w + nu * center) / (1.0 + nu)
        m = self.ell - self.D @ w
        off, away = w - (self.D.T @ a + nu * center) / (1.0 + nu), w - center
        gap = 0.5 * (1.0 + nu) * float(off @ off)
        objective = 0.5 * float(w @ w) + 0.5 * nu * float(away @ away)
        if len(m):
            gap += self.groups.gap(a, m)
            objective += self.groups.loss(m)
        return MarginResult(
            *(w, objective, gap, self._spread(a), n_iter),
            _status(gap, objective, tol, unit, status),
            history,
        )

    # -- the ball --------------------------------------------------------------------
    def solve_ball(self, center, radius, *, tol=1e-8, unit=0.0, **options):
        """Minimise subject to |w - center| <= radius.

        The proximal weight whose solution has this distance is found by a secant on
        1 / distance, which would be linear in 1 + nu if the multipliers stayed.
        """
        nu, low, high, last, n_iter, best = 0.0, 0.0, np.inf, None, 0, None
        for _ in range(_BALLS):
            found = self.solve(center, nu, tol=0.1 * tol, unit=unit, **options)
            n_iter += found.n_iter
            away = float(np.linalg.norm(found.w - center))
            point = self._in_ball(found, center, radius, tol, unit)
            best = point if best is None or point.gap < best.gap else best
            if best.converged:
                break
            if found.status is Status.STOPPED:
                best.status = Status.STOPPED
                break
            if away == 0.0 or (nu == 0.0 and away <= radius):
                break
            low, high = (nu, high) if away > radius else (low, nu)
            if high < np.inf and high - low <= 1e-15 * (1.0 + high):
                break
            point = 1.0 + nu, 1.0 / away
            new = (1.0 + nu) * away / radius - 1.0
            if last is not None and last[1] != point[1]:
                slope = (point[0] - last[0]) / (point[1] - last[1])
                new = point[0] + slope * (1.0 / radius - point[1]) - 1.0
            last = point
            if not low < new < high:
                new = 2.0 * low + 1.0 if high == np.inf else 0.5 * (low + high)
            nu = new
        best.n_iter = n_iter
        return best

    def _in_ball(self, found, center, radius, tol, unit):
        """A proximal solution moved into the ball, with the certificate of that."""
        a = found.dual.reshape(-1)
        a = a if self.keep is None else a[self.keep]
        step = found.w - center
        far = float(np.linalg.norm(step))
        w = center + step * min(1.0, radius / far if far > 0 else 1.0)
        dual = self.D.T @ a
        beyond = max(float(np.linalg.norm(dual - center)) - radius, 0.0)
        miss = float(np.linalg.norm(w - dual))
        m = self.ell - self.D @ w
        gap = 0.5 * max((miss - beyond) * (miss + beyond), 0.0)
        objective = 0.5 * float(w @ w)
        if len(m):
            gap += self.groups.gap(a, m)
            objective += self.groups.loss(m)
        status = _status(gap, objective, tol, unit, found.status)
        return MarginResult(w, objective, gap, found.dual, found.n_iter, status)


def _status(gap, objective, tol, unit, otherwise):
    if gap <= tol * max(objective, unit):
        return Status.CONVERGED
    return Status.STALLED if otherwise is Status.CONVERGED else otherwise


def _warn(result, tol):
    from sklearn.exceptions import ConvergenceWarning

    share = result.gap / max(result.objective, 1e-300)
    warnings.warn(
        f"solve_margin_qp stopped with status {result.status.value!r} after "
        f"{result.n_iter} iterations: relative gap {share:.2e} reached, tol={tol:g} "
        "asked; raise max_iter or tol, or scale the features.",
        ConvergenceWarning,
        stacklevel=user_stacklevel(),
    )


# -- checks --------------------------------------------------------------------------
def _sparse_rows(D):
    D = sp.csr_array(D, dtype=np.float64)
    D.sum_duplicates()
    return D


def _center(center, d):
    if center is None:
        return np.zeros(d)
    center = v.as_doubles("prox_center", center)
    if center.shape != (d,) or not np.isfinite(center).all():
        raise ValueError(
            f"prox_center has shape {center.shape}; {d} finite numbers are needed, one "
            "for each column of D."
        )
    return center


def _group_codes(groups, shape):
    codes = v.as_doubles("groups", groups)
    if codes.shape != shape or len(shape) != 1:
        raise ValueError(
            f"groups has shape {codes.shape} and ell {shape}; groups takes D of shape "
            "(rows, d) and one number a row."
        )
    if (
        (codes < 0).any()
        or (codes != np.floor(codes)).any()
        or (np.diff(codes) < 0).any()
    ):
        raise ValueError(
            "groups must hold integers 0, 1, ... that do not decrease; sort the rows."
        )
    return codes.astype(np.intp)


def _solve_ascent(Z, ell, groups, *, tol, max_iter, callback=None):
    """Best pair (w, a) and the result of at most `max_iter` passes over sparse rows.

    Between two certificates groups whose violation was far below the mean are passed
    over; the pass before a certificate visits all.
    """
    Z.sort_indices()
    monitor, n = Monitor(tol, callback), len(groups.starts)
    starts = np.append(groups.starts, len(ell)).astype(np.intp)
    norm = np.asarray(Z.multiply(Z).sum(axis=1)).ravel()
    a, room, w = np.zeros(len(ell)), groups.c.copy(), np.zeros(Z.shape[1])
    violation, scratch = np.zeros(n), np.empty(int(np.diff(starts).max()))
    rng, status, n_iter = np.random.default_rng(0), Status.MAX_ITER, 0
    arrays = (Z.indptr, Z.indices, Z.data, ell, norm, starts, groups.c)
    while n_iter < max_iter:
        n_iter += 1
        order = rng.permutation(n)
        if n_iter % _LOOK > 1:
            order = order[violation[order] > _QUIET * violation.mean()]
        _core.ascend(*arrays, order, a, room, w, scratch, violation)
        if n_iter % _LOOK and n_iter < max_iter:
            continue
        a = groups.clipped(a)
        room = np.maximum(groups.c - groups.sum(a), 0.0)
        w = Z.T @ a
        gap = groups.gap(a, ell - Z @ w)
        J = float(a @ ell) - 0.5 * float(w @ w)
        if monitor.record(n_iter, J, gap, Pair(w.copy(), a.copy(), gap)):
            status = monitor.status
            break
    best = monitor.best
    result = DualResult(
        *(best.point.a, np.zeros(0), best.objective, best.gap, n_iter, status),
        "ascent",
        history=monitor.history,
    )
    return best.point, result


def _dense_rows(D):
    """Dense rows Z with Z Z' = D D', and how weights of Z become weights of D.

    Wide sparse rows are not made dense: Z is the Cholesky factor of their Gram matrix,
    of their rank. The second is a function, or None where Z is D.
    """
    if not sp.issparse(D):
        return D, None
    rows, d = D.shape
    if rows >= d:
        return D.toarray(), None
    gram = (D @ D.T).toarray()
    L, pivots, rank, _ = lapack.dpstrf(gram, tol=-1.0, lower=1)
    rank, order = max(rank, 1), pivots - 1
    Z = np.empty((rows, rank))
    Z[order] = np.tril(L)[:, :rank]
    first, spanning = L[:rank, :rank], D[order[:rank]]

    def weights(w):
        return spanning.T @ solve_triangular(first, w, lower=True, trans="T")

    return Z, weights
