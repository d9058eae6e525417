"""Blocks: what a prior over parameters does with weighted data.

A block is a model p(x | theta) with a prior over theta, bound to rows x_1 .. x_n. Real
row weights a, negative ones included, tilt the prior,

    P_a(theta)  ~  P_0(theta) exp( sum_t a_t log p(x_t | theta) ),

and all that maximum entropy discrimination asks of a model is the convex function

    log Z(a) = log E_0 exp( sum_t a_t log p(x_t | theta) ),

its gradient E_a log p(x_t | theta), its Hessian Cov_a(log p(x_s | .), log p(x_t | .))
and its domain {a : Z(a) finite}, which is convex and contains a = 0.

Source: Jaakkola, Meila & Jebara (1999), Theorem 1 and section 3.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from maxent._support.docs import InheritedDocs
from maxent._support.typing import ArrayLike, FloatArray, IntArray


class Block(InheritedDocs, ABC):
    """Base class of blocks: what :func:`maxent.discrimination.solve_blocks` needs.

    A block of your own derives from this class, or has its methods, and defines
    `n_rows`, `log_partition`, `mean` and `hessian_factor`; `max_step` if its domain is
    not the whole space, and `score` if it is to be applied to new rows. Everything else
    has a default: what is for speed, and what is for domains of linear inequalities
    (:meth:`slacks`). The user guide has a table.

    Attributes
    ----------
    n_rows : int
        Number of rows that carry a weight.
    rank : int
        Columns of `hessian_factor`; beyond a size, solvers use `hessian_product` alone.
        0 if they are few.
    largest : float
        Upper bound of the log-likelihood of every row: 0 for probabilities, inf for
        densities.
    cheap_products : bool
        Whether `hessian_product` costs about as much as `mean`, and `hessian_factor`
        many times as much; solvers then work by products.
    """

    n_rows: int
    rank: int = 0
    largest: float = np.inf
    cheap_products: bool = False
    #: products that cost as much as the matrix between some rows, per row: 0.08 to 0.35
    #: for 10 to 40 columns of trees and 200 to 2000 rows
    _matrix_cost = 0.1

    @abstractmethod
    def log_partition(self, a: FloatArray) -> float:
        """Log Z at real row weights.

        Parameters
        ----------
        a : ndarray (n_rows,)
            Real row weights.

        Returns
        -------
        float
            0 at a = 0, ``inf`` outside the domain.
        """

    @abstractmethod
    def mean(self, a: FloatArray) -> FloatArray:
        """Expected log-likelihood of every row: the gradient of log Z.

        Parameters
        ----------
        a : ndarray (n_rows,)
            Real row weights.

        Returns
        -------
        ndarray (n_rows,)
            E_a log p(x_t | theta).
        """

    @abstractmethod
    def hessian_factor(self, a: FloatArray) -> FloatArray:
        """Factor of the Hessian of log Z.

        Parameters
        ----------
        a : ndarray (n_rows,)
            Real row weights.

        Returns
        -------
        ndarray (n_rows, p)
            F with Hessian F F'.
        """

    def _factor_rows(self, a):
        """The factor as rows that are written when they are needed, or None.

        Compiled products with these read little memory, of which two threads get less
        than twice as much.
        """
        return None

    def barrier_factor(self, a: FloatArray, curvature: FloatArray) -> FloatArray:
        """Factor of the Hessian of log Z and of a curvature along the slacks.

        Parameters
        ----------
        a : ndarray (n_rows,)
            Real row weights.
        curvature : ndarray (k,)
            What is added along every one of the :meth:`slacks`.

        Returns
        -------
        ndarray (n_rows, p)
            F with the sum F F'.
        """
        along = [
            np.sqrt(c) * self.slack_gradient(unit)
            for c, unit in zip(curvature, np.eye(len(curvature)), strict=True)
        ]
        return np.column_stack([self.hessian_factor(a), *along])

    def hessian_product(self, a: FloatArray, x: FloatArray) -> FloatArray:
        """Hessian of log Z times a vector.

        Parameters
        ----------
        a : ndarray (n_rows,)
            Real row weights.
        x : ndarray (n_rows,)
            The vector.

        Returns
        -------
        ndarray (n_rows,)
            The product.
        """
        factor = self.hessian_factor(a)
        return factor @ (factor.T @ x)

    def hessian_among(
        self, a: FloatArray, rows: IntArray, curvature: FloatArray | None = None
    ) -> Callable[[FloatArray], FloatArray]:
        """Products with the Hessian of log Z between some rows.

        Parameters
        ----------
        a : ndarray (n_rows,)
            Real row weights.
        rows : ndarray of int (k,)
            The rows.
        curvature : ndarray, optional
            What is added to the Hessian along every one of the :meth:`slacks`.

        Returns
        -------
        callable
            Takes x (k,) to the rows of H x', where x' has x at the rows and zero
            elsewhere.
        """

        def product(x: FloatArray) -> FloatArray:
            full = np.zeros(self.n_rows)
            full[rows] = x
            out = self.hessian_product(a, full)
            if curvature is not None:
                out = out + self.slack_gradient(curvature * self.slack_changes(full))
            return out[rows]

        return product

    def hessian_matrix(
        self, a: FloatArray, rows: IntArray, curvature: FloatArray | None = None
    ) -> FloatArray | None:
        """The Hessian of log Z between some rows, if it is cheaper than its products.

        Parameters
        ----------
        a : ndarray (n_rows,)
            Real row weights.
        rows : ndarray of int (k,)
            The rows.
        curvature : ndarray, optional
            What is added to the Hessian along every one of the :meth:`slacks`.

        Returns
        -------
        ndarray (k, k) or None
            None, the default, if k products with it are the quickest way.
        """
        return None

    def slacks(self, a: FloatArray) -> FloatArray | None:
        """Slacks of the linear inequalities that make up the domain.

        Parameters
        ----------
        a : ndarray (n_rows,)
            Real row weights inside the domain.

        Returns
        -------
        ndarray (k,) or None
            Affine functions of a, all > 0 inside and only there. None, the default, for
            the whole space, and for a domain that only `max_step` describes.
        """
        return None

    def slack_changes(self, x: FloatArray) -> FloatArray:
        """Change of the slacks.

        Parameters
        ----------
        x : ndarray (n_rows,)
            Change of the row weights.

        Returns
        -------
        ndarray (k,)
            ``slacks(a + x) - slacks(a)``, whatever a is.
        """
        raise NotImplementedError(
            f"{type(self).__name__}.slacks needs a method slack_changes beside it."
        )

    def slack_gradient(self, z: FloatArray) -> FloatArray:
        """Gradient of a weighted sum of the slacks.

        Parameters
        ----------
        z : ndarray (k,)
            Weights of the slacks.

        Returns
        -------
        ndarray (n_rows,)
            Derivative of ``z @ slacks(a)`` by a.
        """
        raise NotImplementedError(
            f"{type(self).__name__}.slacks needs a method slack_gradient beside it."
        )

    def with_slack_duals(self, duals: FloatArray) -> Block | None:
        """The block whose posteriors account for slacks that vanish.

        Where log Z is finite, or all but finite, as a slack goes to zero, an optimum
        can lie there; the slack then has a Lagrange multiplier.

        Parameters
        ----------
        duals : ndarray (k,)
            Multipliers >= 0 of the :meth:`slacks`.

        Returns
        -------
        Block or None
            This block with ``mean(a) - slack_gradient(duals)`` for the mean, and such
            posteriors, whose divergence from those at `a` is ``duals @ slacks(a)``.
            None, the default, for models that have no such posteriors, or whose log Z
            itself keeps the slacks away from zero.
        """
        return None

    def max_step(self, a: FloatArray, direction: FloatArray) -> float:
        """Largest step of weights along a line that stays in the domain.

        Parameters
        ----------
        a : ndarray (n_rows,)
            Real row weights.
        direction : ndarray (n_rows,)
            Change of the weights.

        Returns
        -------
        float
            Supremum of t with a + t * direction in the domain; maybe ``inf``.
        """
        return np.inf

    def posterior(self, a: FloatArray) -> Any:
        """Return the posterior that an estimator keeps to score new rows.

        Parameters
        ----------
        a : ndarray (n_rows,)
            Real row weights.

        Returns
        -------
        object or None
            With methods `expected_log_prob` and, if there are predictive densities,
            `predictive_log_prob`. None, the default, for models that :meth:`score`
            alone applies to new rows.
        """
        return None

    def score(self, a: FloatArray, X: ArrayLike) -> FloatArray:
        """Expected log-likelihood of new rows at given weights.

        Parameters
        ----------
        a : ndarray (n_rows,)
            Real row weights.
        X : array-like (n, n_features)
            New rows.

        Returns
        -------
        ndarray (n,)
            E_a log p(x | theta).

        Raises
        ------
        NotImplementedError
            If the block does not define it.
        """
        raise NotImplementedError(
            f"{type(self).__name__} scores no new rows: it does not define score(a, X)."
        )


_NEEDED = ("n_rows", "log_partition", "mean", "hessian_factor")
_OPTIONAL = (
    *("rank", "largest", "cheap_products", "barrier_factor", "hessian_product"),
    *("hessian_among", "hessian_matrix", "slacks", "slack_changes", "slack_gradient"),
    *("with_slack_duals", "max_step", "score", "posterior"),
)


def as_block(value: Any) -> Block | None:
    """A value as a Block, with the defaults of the class for what it does not define.

    Parameters
    ----------
    value : Block or object
        A block needs no base class.

    Returns
    -------
    Block or None
        None for objects without `n_rows`, `log_partition`, `mean` or `hessian_factor`.
    """
    if isinstance(value, Block):
        return value
    if isinstance(value, type) or not all(hasattr(value, name) for name in _NEEDED):
        return None
    # errors name the class of the value
    home = {"__module__": type(value).__module__}
    return type(type(value).__name__, (_AdaptedBlock,), home)(value)


class _AdaptedBlock(Block):
    """The methods of an object of another class, looked up whenever they are used."""

    def __init__(self, value):
        self._value = value

    def __getattribute__(self, name):
        own = super().__getattribute__
        if name in _NEEDED:
            return getattr(own("_value"), name)
        if name in _OPTIONAL and hasattr(own("_value"), name):
            return getattr(own("_value"), name)
        return own(name)

    def __reduce__(self):  # the type of an adapter is made anew for every value
        return as_block, (self._value,)

    # abstract in the base class; answered by the value
    log_partition = mean = hessian_factor = None  # type: ignore[assignment]
