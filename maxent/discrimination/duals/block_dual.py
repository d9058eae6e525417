"""The dual of discrimination over any blocks.

    maximise  J(lam) = sum_r phi_r(lam_r) - sum_s log Z_s(A_s lam) - bias potential

over lam >= 0 in the domain, where Z_s is the partition function of a block (see
:mod:`maxent.families.priors.block`) and the map A_s turns multipliers into weights of
its rows. J is concave and -log Z is a barrier of the blocks' domain, so the interior
point of the vector machines serves here too; only its linear systems differ. It
factorises the Hessian of every block. Blocks with `cheap_products`, distributions over
trees among them, make a product with their Hessian in about the time of a gradient, and
a factor in a hundred times as much: for these there is a projected Newton method.

Source: Jaakkola, Meila & Jebara (1999), Theorem 1.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from maxent._optimize.bias import max_margin_bias
from maxent._optimize.block_sum import BlockSum
from maxent._optimize.constraint_rounds import constraint_rounds, few_can_matter
from maxent._optimize.interior_point import interior_point
from maxent._optimize.maps import Diagonal
from maxent._optimize.projected_newton import projected_newton
from maxent._optimize.rows import Rows
from maxent._optimize.secant_newton import secant_newton
from maxent._support import validation as v
from maxent._support.results import (
    DualResult,
    Listener,
    Status,
    relayed,
    result_in_turn,
    resumed_callback,
    tell,
)
from maxent._support.threads import single_threaded_blas
from maxent._support.typing import ArrayLike, Bias, Callback, MatrixLike
from maxent.discrimination.duals._refusals import refuse_inseparable
from maxent.discrimination.duals._signed_problem import (
    clip_to_domain,
)
from maxent.discrimination.margins.base import (
    MarginPrior,
    check_is_margin,
    check_positive_mean,
)
from maxent.families.priors.block import as_block

SOLVERS = ("auto", "interior", "newton")
# Newton steps by products are given up beyond so many products, or so many for every
# column of the blocks' factors.
_PRODUCTS, _PRODUCTS_SHARE = 500, 3.0
_FEW = 100  # steps of the interior point, which takes 10 to 60 where it converges
_FEW_SECANTS = 40  # and of those with secants, which take 5 to 36
_FEW_STAGES = 16.0  # for multipliers up to this size, which take two stages or none
_MORE_SECANTS = 100  # for any, where a step is cheap and no domain ends


def solve_blocks(
    blocks: Sequence[Any],
    maps: Sequence[MatrixLike],
    margin: MarginPrior,
    *,
    bias: Bias = None,
    incidence: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    level: ArrayLike | None = None,
    solver: Literal["auto", "interior", "newton"] = "auto",
    tol: float = 1e-8,
    max_iter: int = 200,
    init: ArrayLike | None = None,
    callback: Callback | None = None,
) -> DualResult:
    """Solve the dual of discrimination over any blocks.

    Parameters
    ----------
    blocks : list of Block
        Models with their priors, bound to rows.
    maps : list of array-like or sparse (block.n_rows, n)
        A_s of every block: its row weights are A_s lam. Two classes: +1 or -1 times the
        label on the diagonal. Anomaly detection: the identity.
    margin : MarginPrior
        Shared by all constraints.
    bias : {None, "flat"} or float, default=None
        Prior of the biases of `incidence`: none, flat, or Gaussian of this variance.
    incidence : array-like (n,) or (n, k), optional
        How the constraints see the biases, for two classes the labels. Needed unless
        bias is None.
    sample_weight : array-like (n,), optional
        Weight w stands for w copies of a constraint; > 0.
    level : array-like (n,), optional
        Levels that replace the prior's own, one per constraint.
    solver : {"auto", "interior", "newton"}, default="auto"
        "interior" is a primal-dual interior point. "newton" is a projected Newton
        method for margin priors with a finite slope at zero and finite losses: not for
        "logistic", whose slope is infinite, and "fixed". "auto" takes "newton" where it
        can if all blocks have `cheap_products`, and "interior" where it stalls; without
        such blocks it takes "interior" first, and "newton" where that has not converged
        after 100 steps, but "newton" first, on working sets of constraints, for many
        constraints between more than two blocks. Priors with an infinite slope at zero
        and a finite loss have damped Newton steps in place of "newton"; between one or
        two blocks they come first, unless weights are large and a step is dear.
    tol : float, default=1e-8
        Relative duality gap asked for.
    max_iter : int, default=200
        Bound on the steps of all solvers together.
    init : array-like (n,), optional
        Multipliers to start from; they are moved into the domain.
    callback : callable(n_iter, objective, gap), optional
        Called at each certification; True ends the solver.

    Returns
    -------
    DualResult
        `lam` (n,) and `bias` (k,) with plus sign, None without biases. `blocks` is None
        unless slacks of a block vanish at the optimum (see
        :meth:`~maxent.families.Block.with_slack_duals`); its posteriors at `lam` then
        are those that the gap certifies.

    Raises
    ------
    ValueError
        For maps that do not fit, a prior whose mean is not positive, or fixed margins
        that cannot be met.
    FloatingPointError
        If the objective becomes non-finite.

    Notes
    -----
    Each step of the interior point solves one linear system with the Hessian, through
    a factor of it where that pays and by conjugate gradients beyond; memory is linear
    in n either way. A Newton step takes products with it between the multipliers that
    are not at their bounds.

    References
    ----------
    Jaakkola, Meila & Jebara (1999), Theorem 1 and Lemma 1.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.discrimination import ExponentialMargin, solve_blocks
    >>> from maxent.families import DirichletProduct
    >>> X = [[0, 1], [0, 0], [1, 1], [1, 0]]
    >>> y = np.array([1, 1, -1, -1])
    >>> prior = DirichletProduct(1.0, n_categories=[2, 2])
    >>> blocks = [prior.block(X, y == 1), prior.block(X, y == -1)]
    >>> maps = [np.diag(y), np.diag(-y)]
    >>> result = solve_blocks(blocks, maps, ExponentialMargin(5.0))
    >>> result.converged
    True
    """
    if level is None:
        check_positive_mean(margin)
    else:
        check_is_margin(margin)
    tol, max_iter = v.check_stop(tol, max_iter)
    v.check_callback(callback)
    bound, linear = check_blocks(blocks, maps)
    n = linear[0].shape[1]
    biases = _Biases(bias, incidence, n)
    rows = _checked_rows(margin, n, sample_weight, level)
    solve = _choose_solver(solver, rows.potential, bound)
    if init is not None:
        init = clip_to_domain(v.check_multipliers(init, n), rows)
    R = BlockSum(bound, linear, biases.columns())
    callback = relayed(callback, lambda report: report.translated(biases.completed))
    problem = rows, R, biases.flat
    options = {"tol": tol, "max_iter": max_iter, "init": init, "callback": callback}
    with single_threaded_blas():
        result: DualResult = solve(*problem, **options)
        if result.objective <= tol:
            prefer_zero(result, *problem, tol)
    result = biases.completed(result)
    refuse_inseparable(margin, result, easier="a lower level")
    return result


class _Biases:
    """The prior of the biases, checked, and how the constraints see them.

    Parameters
    ----------
    bias, incidence
        As for :func:`solve_blocks`.
    n : int
        Constraints.

    Attributes
    ----------
    flat : ndarray (n, k) or None
        Incidence of biases with a flat prior.
    """

    def __init__(self, bias, incidence, n):
        bias = v.check_bias(bias)
        self._incidence = None if bias is None else check_incidence(incidence, n)
        self._variance = bias if isinstance(bias, float) else None
        self.flat = self._incidence if bias == "flat" else None

    def columns(self):
        """Columns (n, k) that a Gaussian prior adds to the quadratic form, or None."""
        if self._variance is None:
            return None
        return np.sqrt(self._variance) * self._incidence

    def completed(self, result: DualResult) -> DualResult:
        """Return the result with biases of a Gaussian prior, which follow from lam."""
        if self._variance is not None:
            result.bias = self._variance * (self._incidence.T @ result.lam)
        return result


def _checked_rows(margin, n, sample_weight, level):
    """Rows of n constraints, weights and levels checked."""
    weight = v.check_weights(sample_weight, n)
    weight = np.ones(n) if weight is None else weight
    if not (weight > 0).all():
        raise ValueError("sample_weight must be > 0; drop constraints of weight zero.")
    if level is None:
        return Rows.of(margin, weight)
    q = np.array(v.as_doubles("level", level))
    if q.shape != (n,) or not np.isfinite(q).all():
        raise ValueError(f"level must hold {n} finite numbers.")
    return Rows.of(margin, weight, q)


def _choose_solver(solver, potential, blocks):
    """The function behind the name of a solver."""
    v.check_choice("solver", solver, SOLVERS)
    possible = potential.finite_at_zero and potential.finite_loss
    if solver == "newton" and not possible:
        raise ValueError(
            "solver='newton' is for margin priors whose slope at zero multipliers and "
            "whose losses are finite; use solver='interior'."
        )
    if solver == "auto" and possible and all(b.cheap_products for b in blocks):
        return _newton_then_interior
    if solver == "auto" and potential.finite_loss:
        return _by_size if possible else _secants_and_interior
    return projected_newton if solver == "newton" else _interior


def _interior(rows, R, E, *, tol, callback, **options):
    """The interior point, aiming a little above fixed margins."""

    def progress(report):
        R.iteration = report.n_iter + 1
        return tell(callback, report)

    inner = rows
    if rows.potential.hard:
        # With a slightly higher level, rounding leaves every margin met.
        lift = 0.05 * tol * np.maximum(np.abs(rows.q), 1e-3)
        inner = replace(rows, q=rows.q + lift)
    return interior_point(
        *(inner, R, E), tol=tol, certified=rows, callback=Listener(progress), **options
    )


def _by_size(rows, R, E, **options):
    """The solver for blocks whose products cost as much as their factors.

    Margins between Gaussian classes a thousand standard deviations apart are near 1e8,
    and change by as much while the multipliers of other rows grow: linear steps of the
    slacks do not follow them. A projected step leaves such multipliers at zero.
    """
    if few_can_matter(R):
        if not R.stores_factor:  # a step of the interior point could take hours
            return constraint_rounds(rows, R, E, **options)
        return _in_turn(constraint_rounds, _interior, rows, R, E, **options)
    return _in_turn(_interior, projected_newton, rows, R, E, few=_FEW, **options)


def _newton_then_interior(rows, R, E, **options):
    """Newton steps by products, and the interior point where these are many.

    It is no quicker where a domain ends.
    """
    most = np.inf
    if _are_unbounded(R.blocks):
        columns = sum(block.rank for block in R.blocks)
        most = max(_PRODUCTS, _PRODUCTS_SHARE * columns)
    first = functools.partial(projected_newton, most=most)
    return _in_turn(first, _interior, rows, R, E, **options)


def _are_unbounded(blocks):
    """True if all weights are in the domain, as far as the blocks tell."""
    return all(block.slacks(np.zeros(block.n_rows)) is None for block in blocks)


def _secants_and_interior(rows, R, E, **options):
    """The interior point, then damped steps with secants, which go on where it stalls.

    Between two classes damped steps come first: they follow slopes that are infinite at
    zero in half as many steps. Large multipliers take many stages of them, each worth
    its steps if these are done by products, and among many constraints of every row
    they are short.
    """
    few = 0 if len(R.blocks) > 2 else _first_secants(rows, R.blocks)
    both = functools.partial(_in_turn, _interior, secant_newton, few=_FEW)
    if few:
        return _in_turn(secant_newton, both, rows, R, E, few=few, **options)
    return both(rows, R, E, **options)


def _first_secants(rows, blocks):
    """Damped steps between two classes before the interior point; 0 for none."""
    if _are_unbounded(blocks) and all(block.cheap_products for block in blocks):
        return _MORE_SECANTS
    return _FEW_SECANTS if rows.upper.max() <= _FEW_STAGES else 0


def _in_turn(first, second, rows, R, E, *, tol, max_iter, init, callback, few=None):
    """Run `first` for at most `few` steps; on failure run `second` from scratch.

    The points of the interior point keep away from zero and from the ends of the
    domain, and are no start for the other solvers.
    """
    most = max_iter if few is None else min(max_iter, few)
    one = first(rows, R, E, tol=tol, max_iter=most, init=init, callback=callback)
    left = max_iter - one.n_iter
    failed = one.status in (Status.MAX_ITER, Status.STALLED)
    if one.converged or not failed or not left:
        return one
    progress = resumed_callback(one, callback)
    other = second(rows, R, E, tol=tol, max_iter=left, init=None, callback=progress)
    return result_in_turn(one, other, callback)


def prefer_zero(result, rows, R, E, tol):
    """Zero multipliers where they are optimal within tol.

    A whole set of biases is optimal then; this names one that does not depend on the
    way there.
    """
    lam = np.zeros(len(rows.q))
    slope = rows.slope(lam)
    if not np.isfinite(slope).all():
        return  # the logistic prior asks for more than any margin gives
    _, margins = R.value_and_margins(lam)
    d, b = rows.q - margins, None
    if E is not None:
        b = max_margin_bias(d + slope, E)
        d = d - E @ b
    gap = rows.gap(lam, d)
    if gap <= tol:
        result.lam, result.bias, result.objective, result.gap = lam, b, 0.0, gap


def check_blocks(blocks, maps):
    """Blocks and their maps as lists, every one of its kind and size."""
    if not isinstance(blocks, (list, tuple)) or not isinstance(maps, (list, tuple)):
        raise TypeError(
            "blocks and maps must be lists, with a map for every block; found "
            f"{v.shown(type(blocks))} and {v.shown(type(maps))}."
        )
    if len(blocks) != len(maps) or not len(maps):
        raise ValueError(
            f"{len(blocks)} blocks and {len(maps)} maps: every block needs its map."
        )
    bound = [as_block(block) for block in blocks]
    for s, (named, block) in enumerate(zip(blocks, bound, strict=True)):
        if block is None:
            raise TypeError(
                f"blocks[{s}]={v.shown(named)} is no Block; bind a prior to rows with "
                "prior.block(X), or derive a block of your own from "
                "maxent.families.Block."
            )
    out = []
    for s, (block, A) in enumerate(zip(bound, maps, strict=True)):
        A = A if sp.issparse(A) else v.as_doubles(f"maps[{s}]", A)
        if A.ndim != 2 or A.shape[0] != block.n_rows or not A.shape[1]:
            raise ValueError(
                f"maps[{s}] has shape {A.shape}; block {s} has {block.n_rows} rows, so "
                f"it must be ({block.n_rows}, n) with n >= 1 multipliers."
            )
        if out and A.shape[1] != out[0].shape[1]:
            raise ValueError(
                f"maps[{s}] has shape {A.shape}, but maps[0] has {out[0].shape[1]} "
                "columns: all maps share their multipliers."
            )
        A = sp.csr_array(A, dtype=np.float64)
        if not np.isfinite(A.data).all():
            raise ValueError(f"maps[{s}] has NaN or infinite entries.")
        rows = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
        diagonal = A.shape[0] == A.shape[1] and (A.indices == rows).all()
        out.append(Diagonal(A.diagonal()) if diagonal else A)
    return bound, out


def check_incidence(incidence, n):
    """Columns (n, k) of the biases; one vector is one column."""
    if incidence is None:
        raise ValueError(
            "incidence is needed with a bias: for two classes the labels +1 and -1."
        )
    E = v.as_doubles("incidence", incidence)
    E = E[:, None] if E.ndim == 1 else E
    if E.ndim != 2 or len(E) != n or not np.isfinite(E).all():
        raise ValueError(
            f"incidence has shape {np.shape(incidence)}; it must hold one finite row "
            f"for each of the {n} multipliers."
        )
    return E
