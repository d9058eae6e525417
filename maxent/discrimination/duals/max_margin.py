"""The largest margin that random trees with given tables can meet.

A distribution over trees per class gives constraint t the expected margin m_t. The
largest smallest margin is the value of a game,

    max over distributions of min_t m_t = min over shares d of max over trees,

with d >= 0, sum d = 1, and E' d = 0 where there are biases: for fixed shares the best
trees are maximum spanning trees, and every one of them cuts the shares.

Source: Jaakkola, Meila & Jebara (1999), sections 3.4 and 3.7.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from maxent._support import validation as v
from maxent._support.typing import ArrayLike, Bias, FloatArray, MatrixLike
from maxent.discrimination.duals.block_dual import check_blocks, check_incidence
from maxent.families.priors.conjugate import ConjugateBlock
from maxent.models.trees.spanning_trees import SpanningTrees, best_tree_scores

_ENTER = 20  # constraints that may come into play in one round


@dataclass
class MaxMargin:
    """Bounds of the largest margin, as :func:`max_margin` returns them.

    Attributes
    ----------
    lower, upper : float
        Bounds of the largest margin, in nats; with biases `lower` is attained by a
        distribution over the trees found.
    shares : ndarray (n,)
        The hardest mixture of the constraints: proof that no margin beyond `upper` can
        be met.
    n_iter : int
        Linear programs solved.
    converged : bool
        True if the bounds are as close as `tol` asks.
    """

    lower: float
    upper: float
    shares: FloatArray
    n_iter: int
    converged: bool


def max_margin(
    blocks: Sequence[ConjugateBlock],
    maps: Sequence[MatrixLike],
    *,
    bias: Bias = None,
    incidence: ArrayLike | None = None,
    tol: float = 1e-6,
    max_iter: int = 1000,
) -> MaxMargin:
    """Largest margin that all constraints can meet in expectation.

    Beyond it, discrimination with ``margin="fixed"`` has no solution; below it, it has
    one. Bounds from both sides come with the answer.

    Parameters
    ----------
    blocks : list of ConjugateBlock
        Blocks of :class:`SpanningTrees`.
    maps : list of array-like or sparse (block.n_rows, n)
        As for :func:`solve_blocks`.
    bias : {None, "flat"} or float, default=None
        As for :func:`solve_blocks`. A Gaussian bias reaches as far as a flat one.
    incidence : array-like (n,) or (n, k), optional
        As for :func:`solve_blocks`.
    tol : float, default=1e-6
        Stop when ``upper - lower <= tol * (1 + |upper|)``.
    max_iter : int, default=1000
        Bound on the linear programs.

    Returns
    -------
    MaxMargin
        With `lower` and `upper`, bounds of the largest margin in nats; `shares` (n,),
        the hardest mixture of the constraints, which proves that no margin beyond
        `upper` can be met; `n_iter`, linear programs solved; and `converged`.

    Raises
    ------
    ValueError
        For blocks of other models, and maps that do not fit.

    Notes
    -----
    Cutting planes. A linear program over the shares has one cut for every tree found in
    every class; its value bounds the margin from below, since its multipliers are a
    distribution over these trees, and the trees of the best shares so far from above.
    The next trees are those half-way between the two, which needs a third of the rounds
    that the program's own shares need.

    References
    ----------
    Jaakkola, Meila & Jebara (1999), section 3.7.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.discrimination import SpanningTrees, max_margin
    >>> X = np.array([[0, 0], [1, 1], [0, 1], [1, 0]])
    >>> y = np.array([1, 1, -1, -1])
    >>> blocks = [SpanningTrees.fit(X[y == k]).block(X) for k in (1, -1)]
    >>> found = max_margin(blocks, [np.diag(y), np.diag(-y)])
    >>> round(found.lower, 6), round(found.upper, 6)    # log 5
    (1.609438, 1.609438)
    """
    blocks, maps = check_blocks(blocks, maps)
    _check_spanning_trees(blocks)
    tol, max_iter = v.check_stop(tol, max_iter)
    n = maps[0].shape[1]
    E = None
    if v.check_bias(bias) is not None:
        E = check_incidence(incidence, n)
    game = _Game(blocks, maps, E)
    best = game.start()
    upper, lower, rounds = game.cut(best), -np.inf, 0
    while rounds < max_iter:
        rounds += 1
        shares, value, met = game.solve_program()
        lower = max(lower, float(met.min()))
        if upper - lower <= tol * (1.0 + abs(upper)):
            break
        more = game.enter(met, value - 0.1 * tol * (1.0 + abs(value)))
        for mix in (0.5, 0.0):  # the program's own shares if half-way finds no cut
            before = game.size
            trial = mix * best + (1.0 - mix) * shares
            reached = game.cut(trial)
            if reached < upper:
                best, upper = trial, reached
            if game.size > before:
                break
        else:
            if not more:
                break
    close = upper - lower <= tol * (1.0 + abs(upper))
    return MaxMargin(float(lower), float(upper), best, rounds, bool(close))


def _check_spanning_trees(blocks):
    """Refuse blocks of other models."""
    for s, block in enumerate(blocks):
        if not (
            isinstance(block, ConjugateBlock) and isinstance(block.prior, SpanningTrees)
        ):
            raise ValueError(
                f"blocks[{s}]={v.shown(block)} is no block of SpanningTrees; the "
                "margins of other models have no such bound."
            )


class _Game:
    """Cuts of the shares, one for every tree of every class.

    Few constraints have a share; the program knows those that may, `rows`.
    """

    def __init__(self, blocks, maps, E):
        self.blocks, self.maps = blocks, maps
        self.n = maps[0].shape[1]
        self.E = np.empty((self.n, 0)) if E is None else E
        self.rows = np.arange(self.n)
        self.cuts, self.owner, self.met_trees = [], [], set()

    @property
    def size(self):
        return len(self.cuts)

    def start(self):
        """Some shares (n,); the constraints that have one are those in play."""
        program = self._program(np.empty((0, self.n)))
        # Rounding may leave the simplex.
        shares = np.maximum(program.x[: self.n], 0.0)
        self.rows = np.flatnonzero(shares)
        return shares / shares.sum()

    def solve_program(self):
        """Shares (n,) of the smallest value of the cuts, that value, and margins (n,).

        The value is that of the constraints in play; the margins, less the biases, are
        those of the mixture of trees which proves it, and bound it for all.
        """
        cuts = np.array(self.cuts)
        program = self._program(cuts[:, self.rows])
        shares = np.zeros(self.n)
        shares[self.rows] = np.maximum(program.x[: len(self.rows)], 0.0)
        trees = np.maximum(-program.ineqlin.marginals, 0.0)
        trees /= np.bincount(self.owner, trees)[self.owner]
        met = trees @ cuts - self.E @ program.eqlin.marginals[1:]
        return shares / shares.sum(), float(program.fun), met

    def enter(self, met, value):
        """Bring violated constraints into play; return True if there are some."""
        short = np.setdiff1d(np.flatnonzero(met < value), self.rows)
        worst = short[np.argsort(met[short], kind="stable")[:_ENTER]]
        self.rows = np.union1d(self.rows, worst)
        return len(short) > 0

    def _program(self, cuts):
        n, k = len(self.rows), len(self.blocks)
        E = self.E[self.rows]
        ends = -np.eye(k)[self.owner] if len(cuts) else np.empty((0, k))
        program = linprog(
            np.append(np.zeros(n), np.full(k, 1.0 if len(cuts) else 0.0)),
            A_ub=np.column_stack([cuts, ends]),
            b_ub=np.zeros(len(cuts)),
            A_eq=np.column_stack([np.ones(n), E]).T @ np.eye(n, n + k),
            b_eq=np.append(1.0, np.zeros(E.shape[1])),
            bounds=[(0.0, None)] * n + [(None, None)] * k,
            method="highs",
        )
        if not program.success:
            raise ValueError(
                f"the margins cannot be bounded ({program.message.splitlines()[0]}): "
                "with a bias, every class needs a constraint."
            )
        return program

    def cut(self, shares):
        """Add the best trees at some shares; their value bounds the margin above."""
        total = 0.0
        for s, (block, A) in enumerate(zip(self.blocks, self.maps, strict=True)):
            edges, scores = best_tree_scores(block, A @ shares)
            margins = A.T @ scores
            total += float(margins @ shares)
            key = (s, edges.tobytes())
            if key not in self.met_trees:
                self.met_trees.add(key)
                self.cuts.append(margins)
                self.owner.append(s)
        return total
