"""Mixtures as models of outlier detectors: the component of a row is hidden.

    log p(x | theta) = log sum_k pi_k p(x | theta_k),   pi ~ Dirichlet(1, .., 1)

with theta_k from one conjugate prior. The variational posterior is a product of the
posteriors of pi and of every theta_k.

Source: Jaakkola, Meila & Jebara (1999), section 4.1.
"""

from __future__ import annotations

from typing import Any, Literal, NoReturn, cast

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp, psi, softmax, xlogy

from maxent._support import validation as v
from maxent._support.random_state import as_generator
from maxent._support.typing import ArrayLike, FloatArray, RandomState
from maxent.discrimination.detection._latent_rounds import Hidden, LatentProblem
from maxent.discrimination.detection._outlier_models import OutlierModel, check_model
from maxent.discrimination.kernel_blocks import GaussianCentre, GaussianScores
from maxent.families.priors.block import as_block
from maxent.families.priors.dirichlet_tables import DirichletCounts, check_table
from maxent.models._component_search import groups_of_rows

_REST = 0.1  # of every row, which a start divides among all components
_REST_OF_GROUPS = 1e-3  # where groups may be far apart


class LatentMixture:
    """A mixture as the model of :class:`MEDOutlierDetector`.

    Normal rows are of several kinds, and nobody knows which row is of which kind.

    Parameters
    ----------
    component : {"gaussian", "multinomial", "tree"} or prior, default="gaussian"
        Model of one kind of row, as for :class:`MEDOutlierDetector`: a name, or a
        conjugate prior, which all components share.
    n_components : int, default=2
        Number of components K, >= 1 and at most the number of rows.
    n_init : int, default=5
        Random starts, >= 1; the one that ends at the least divergence is kept.
    random_state : int, Generator, RandomState or None, default=None
        Of the starts.
    tol : float, default=1e-6
        A start ends once a round lowers the divergence D by at most
        ``tol * (1 + D)``; > 0. Those that are above the least one by a thousandth or
        more once rounds lower it by ``1e-4 * (1 + D)`` end there.
    max_rounds : int, default=2000
        Rounds of a start at most.

    See Also
    --------
    MEDSequenceOutlierDetector : Hidden states of sequences.

    Notes
    -----
    A round solves one dual with K times the columns of a single component. With one
    component the detector is the one with `component` as its model.

    References
    ----------
    Jaakkola, Meila & Jebara (1999), section 4.1, eqs. (47)-(50) and Theorem 6.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent import MEDOutlierDetector
    >>> from maxent.discrimination import LatentMixture
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 2)) + 8.0 * rng.integers(0, 2, size=(100, 1))
    >>> model = LatentMixture("gaussian", n_components=2, random_state=0)
    >>> detector = MEDOutlierDetector(model, contamination=0.05).fit(X)
    >>> detector.predict([[0.0, 0.0], [4.0, 4.0], [8.0, 8.0]])
    array([ 1, -1,  1])
    """

    def __init__(
        self,
        component: Literal["gaussian", "multinomial", "tree"]
        | OutlierModel = "gaussian",
        n_components: int = 2,
        n_init: int = 5,
        random_state: RandomState = None,
        *,
        tol: float = 1e-6,
        max_rounds: int = 2000,
    ) -> None:
        check_model(component, "component")
        if isinstance(component, (GaussianScores, GaussianCentre)):
            raise ValueError(
                f"component={v.shown(component)} must be a model of probabilities: a "
                "name, or a conjugate prior of maxent.families."
            )
        self.component = component
        self.n_components = v.check_count("n_components", n_components)
        self.n_init = v.check_count("n_init", n_init)
        self.random_state = random_state
        self.tol = v.check_positive("tol", tol)
        self.max_rounds = v.check_count("max_rounds", max_rounds)

    def __repr__(self) -> str:
        return f"LatentMixture({self.component!r}, n_components={self.n_components})"

    def get_spec(self) -> dict[str, Any]:
        """Parameters by name, enough to build an equal value.

        Returns
        -------
        dict
            Keyword arguments of the constructor.
        """
        return dict(vars(self))

    def block(self, X: object, /) -> NoReturn:
        """Refuse rows: with hidden components there is no block.

        Parameters
        ----------
        X : object
            Not read.

        Raises
        ------
        ValueError
            Always; the message says what to use instead.
        """
        raise ValueError(
            "a mixture is no block: its components are hidden. Use it as the model of "
            "MEDOutlierDetector."
        )


def check_rows(mixture: LatentMixture, n: int) -> None:
    """Refuse fewer rows than components."""
    if n < mixture.n_components:
        raise ValueError(
            f"n_components={mixture.n_components} is more than the {n} rows of "
            f"positive weight (n_samples={n}); lower it or add rows."
        )


def groups(mixture: LatentMixture, X: FloatArray, weight: FloatArray) -> Any:
    """Groups of the rows, by which a prior is chosen; None of one component."""
    if mixture.n_components == 1:
        return None
    rng = as_generator(mixture.random_state).spawn(mixture.n_init + 1)[-1]
    return groups_of_rows(X, weight, mixture.n_components, rng)


def generators(mixture: LatentMixture) -> list[np.random.Generator]:
    """One source of random numbers for each start that can differ."""
    n = 1 if mixture.n_components == 1 else mixture.n_init
    return as_generator(mixture.random_state).spawn(n)


class MixturePosterior:
    """Variational posterior of a mixture: a Dirichlet and one posterior a component.

    Parameters
    ----------
    pseudo_counts : array-like (n_components,)
        Of the Dirichlet distribution of the weights, > 0.
    components : list
        Posteriors of the components.
    """

    def __init__(self, pseudo_counts: ArrayLike, components: list[Any]) -> None:
        found = np.asarray(pseudo_counts)
        self.pseudo_counts = check_table(0, found, (len(components),))
        self.components = list(components)
        for one in self.components:
            if not hasattr(one, "expected_log_prob"):
                raise ValueError(
                    f"components has {v.shown(one)}, which scores no rows."
                )

    def __repr__(self) -> str:
        return f"MixturePosterior(pseudo_counts={self.pseudo_counts!r})"

    def get_spec(self) -> dict[str, Any]:
        """Parameters by name, enough to build an equal value.

        Returns
        -------
        dict
            Keyword arguments of the constructor.
        """
        return {"pseudo_counts": self.pseudo_counts, "components": self.components}

    @property
    def weights(self) -> FloatArray:
        """Expected weights of the components, (n_components,)."""
        return self.pseudo_counts / self.pseudo_counts.sum()

    def log_joint(self, X: ArrayLike, predictive: bool = False) -> FloatArray:
        """Joint log-likelihoods of rows and components.

        Parameters
        ----------
        X : array-like (n, n_features)
            Rows.
        predictive : bool, default=False
            Logs of expected likelihoods instead of expected log-likelihoods.

        Returns
        -------
        ndarray (n, n_components)
            ``E log(pi_k p(x | theta_k))``, in nats; or the log of the expectation.
        """
        name = "predictive_log_prob" if predictive else "expected_log_prob"
        parts = [getattr(one, name)(X) for one in self.components]
        counts = self.pseudo_counts
        shares = np.log(self.weights) if predictive else _expected_logs(counts)
        return shares + np.column_stack(parts)

    def expected_log_prob(self, X: ArrayLike) -> FloatArray:
        """Lower bound of the expected log-likelihood of rows: what training raises.

        Parameters
        ----------
        X : array-like (n, n_features)
            Rows.

        Returns
        -------
        ndarray (n,)
            ``log sum_k exp E log(pi_k p(x | theta_k))``, in nats.
        """
        return cast(FloatArray, logsumexp(self.log_joint(X), axis=1))

    def predictive_log_prob(self, X: ArrayLike) -> FloatArray:
        """Log of the expected likelihood of rows.

        Parameters
        ----------
        X : array-like (n, n_features)
            Rows.

        Returns
        -------
        ndarray (n,)
            ``log sum_k E pi_k E p(x | theta_k)``, in nats.
        """
        return cast(FloatArray, logsumexp(self.log_joint(X, True), axis=1))

    def baseline_scores(self, X: Any) -> FloatArray:
        """Scores of rows that a level is a quantile of: predictive ones if there are.

        Parameters
        ----------
        X : array-like (n, n_features)
            Rows.

        Returns
        -------
        ndarray (n,)
        """
        known = all(hasattr(one, "predictive_log_prob") for one in self.components)
        return self.predictive_log_prob(X) if known else self.expected_log_prob(X)

    def responsibilities(self, X: ArrayLike) -> FloatArray:
        """Posterior probabilities of the components.

        Parameters
        ----------
        X : array-like (n, n_features)
            Rows.

        Returns
        -------
        ndarray (n, n_components)
            Rows sum to one.
        """
        return cast(FloatArray, softmax(self.log_joint(X), axis=1))


class MixtureProblem(LatentProblem):
    """Rows of hidden components; `expected` is their posterior (n, K)."""

    def __init__(self, prior, X, n_components, weight=None):
        self.X, self.n, self.K = X, len(X), n_components
        self.weight = np.ones(len(X)) if weight is None else weight
        self.sizes = getattr(prior, "n_categories", None)
        self.components = [_bound(prior, X) for _ in range(n_components)]
        self.largest = self.components[0].largest
        self.cheap = all(block.cheap_products for block in self.components)
        self.shares = DirichletCounts(np.ones(n_components))

    def start(self, rng):
        """Every row with a random share of one group: Gaussian, or about a random row.

        Drawn over the different rows in sorted order, so that neither the order of rows
        nor repetitions matter.
        """
        rows, first, inverse = np.unique(
            self.X, axis=0, return_index=True, return_inverse=True
        )
        if self.sizes is None:
            labels = groups_of_rows(self.X, self.weight, self.K, rng)[first]
            near, rest = labels[:, None] == np.arange(self.K), _REST_OF_GROUPS
        else:
            share = np.bincount(inverse.ravel(), self.weight) / self.weight.sum()
            near = _nearest(_indicators(rows, self.sizes), share, self.K, rng)
            rest = _REST
        Q = (rest / self.K + (1.0 - rest) * near) * rng.uniform(
            0.9, 1.1, size=near.shape
        )
        return _posterior(np.log(Q)[inverse.ravel()])

    def blocks(self, hidden):
        Q = hidden.expected
        shares = self.shares.block(Q)
        shares.cheap_products = self.cheap  # K numbers
        maps = [sp.diags_array(q, format="csr") for q in Q.T]
        one = sp.eye_array(self.n, format="csr")
        return [shares, *self.components], [one, *maps]

    def hidden(self, blocks, weights):
        logs = _expected_logs(self._pseudo_counts(blocks, weights))
        means = [
            block.mean(a) for block, a in zip(blocks[1:], weights[1:], strict=True)
        ]
        return _posterior(logs + np.column_stack(means))

    def posterior(self, blocks, weights):
        components = [
            block.posterior(a) for block, a in zip(blocks[1:], weights[1:], strict=True)
        ]
        return MixturePosterior(self._pseudo_counts(blocks, weights), components)

    def _pseudo_counts(self, blocks, weights):
        return blocks[0].posterior(weights[0]).pseudo_counts[0][0]


def _nearest(rows, share, k, rng):
    """Nearest of k rows drawn far apart, (n, k)."""
    deviation = np.sqrt(share @ np.square(rows - share @ rows))
    rows = rows / np.where(deviation > 0, deviation, 1.0)
    centres = _spread_rows(rows, share, k, rng)
    distance = np.stack([np.square(rows - c).sum(axis=1) for c in centres], axis=1)
    return distance == distance.min(axis=1, keepdims=True)


def _spread_rows(rows, share, k, rng):
    """Rows drawn one after the other by their squared distance to those drawn."""
    centres = [rows[rng.choice(len(rows), p=share)]]
    for _ in range(k - 1):
        nearest = np.min([np.square(rows - c).sum(axis=1) for c in centres], axis=0)
        chance = share * nearest
        chance = chance / chance.sum() if chance.sum() > 0 else share
        centres.append(rows[rng.choice(len(rows), p=chance)])
    return centres


def _bound(prior, X):
    """A component bound to rows; it must say what its posterior gives new rows."""
    found = prior.block(X)
    block = as_block(found)
    if block is None or block.n_rows != len(X):
        raise ValueError(
            f"component.block(X) returned {v.shown(found)}; it must return a Block "
            f"whose n_rows is {len(X)}, that of X."
        )
    if block.posterior(np.zeros(len(X))) is None:
        raise ValueError(
            f"component={v.shown(prior)} has blocks without a posterior, so a mixture "
            "of them cannot score new rows; give a conjugate prior."
        )
    return block


def _expected_logs(pseudo_counts):
    """E log of the weights of a Dirichlet distribution."""
    return psi(pseudo_counts) - psi(pseudo_counts.sum())


def _posterior(joint):
    """Hidden components from expected joint log-likelihoods (n, K)."""
    bound = logsumexp(joint, axis=1)
    Q = np.exp(joint - bound[:, None])
    return Hidden(bound, -xlogy(Q, Q).sum(axis=1), Q)


def _indicators(rows, sizes):
    """Codes as indicators, between which distances mean something."""
    each = [np.equal.outer(rows[:, k], np.arange(r)) for k, r in enumerate(sizes)]
    return np.concatenate(each, axis=1).astype(np.float64)
