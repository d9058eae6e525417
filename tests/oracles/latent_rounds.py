"""Rounds of outlier detection with hidden variables, straight from the formulas.

Section 4.1 of Jaakkola, Meila & Jebara (1999): sums over the hidden values written out,
the dual maximised by a general solver from SciPy. Slow, and nothing here is shared with
the package.
"""

import itertools

import numpy as np
from scipy.optimize import minimize
from scipy.special import digamma, gammaln, logsumexp, multigammaln


class MultinomialComponent:
    """Product of categorical distributions with one pseudo-count a category."""

    def __init__(self, X, sizes):
        self.hot = [np.equal.outer(X[:, i], np.arange(r)) for i, r in enumerate(sizes)]

    def log_partition(self, a):
        total = 0.0
        for hot in self.hot:
            n = a @ hot
            r = len(n)
            total += gammaln(r) - gammaln(r + a.sum()) + gammaln(1.0 + n).sum()
        return total

    def mean(self, a):
        out = 0.0
        for hot in self.hot:
            n = 1.0 + a @ hot
            out = out + hot @ (digamma(n) - digamma(n.sum()))
        return out


class GaussianComponent:
    """Gaussian with a normal-inverse-Wishart prior (m0, k0, S0, nu0)."""

    def __init__(self, X, m0, k0, nu0, S0):
        self.X, self.m0, self.k0, self.nu0, self.S0 = X, m0, k0, nu0, S0

    def _posterior(self, a):
        k, nu = self.k0 + a.sum(), self.nu0 + a.sum()
        m = (self.k0 * self.m0 + a @ self.X) / k
        S = self.S0 + self.k0 * np.outer(self.m0, self.m0)
        S = S + (self.X.T * a) @ self.X - k * np.outer(m, m)
        return k, nu, m, S

    def log_partition(self, a):
        d = self.X.shape[1]

        def constant(k, nu, S):
            log_det = np.linalg.slogdet(S)[1]
            value = multigammaln(nu / 2, d) - nu / 2 * log_det
            return value - d / 2 * np.log(k) + nu * d / 2 * np.log(2)

        k, nu, _, S = self._posterior(a)
        start = constant(self.k0, self.nu0, self.S0)
        return constant(k, nu, S) - start - d / 2 * a.sum() * np.log(2 * np.pi)

    def mean(self, a):
        d = self.X.shape[1]
        k, nu, m, S = self._posterior(a)
        E = self.X - m
        q = np.einsum("ij,jk,ik->i", E, np.linalg.inv(S), E)
        value = digamma((nu - np.arange(d)) / 2).sum() + d * np.log(2)
        value -= np.linalg.slogdet(S)[1] + d * np.log(2 * np.pi) + d / k
        return 0.5 * (value - nu * q)


class MixtureRounds:
    """A mixture of K equal components; hidden posteriors are arrays (n, K)."""

    def __init__(self, components):
        self.components = components

    def log_partition(self, a, Q):
        K = Q.shape[1]
        n = a @ Q
        total = gammaln(K) - gammaln(K + n.sum()) + gammaln(1.0 + n).sum()
        return total + sum(
            c.log_partition(a * Q[:, k]) for k, c in enumerate(self.components)
        )

    def joint(self, a, Q):
        """E_P log p(x_t, h = k), (n, K)."""
        n = 1.0 + a @ Q
        logs = digamma(n) - digamma(n.sum())
        parts = [c.mean(a * Q[:, k]) for k, c in enumerate(self.components)]
        return logs + np.column_stack(parts)

    def margins(self, a, Q):
        """E_P E_Q log p(x_t, h), the gradient of log_partition."""
        return (Q * self.joint(a, Q)).sum(axis=1)

    def entropy(self, Q):
        return -(Q * np.log(Q)).sum(axis=1)

    def update(self, a, Q):
        joint = self.joint(a, Q)
        return np.exp(joint - logsumexp(joint, axis=1, keepdims=True))


class ChainRounds:
    """A hidden Markov model of symbols, by enumeration of all state paths.

    Hidden posteriors are lists of arrays (n_paths,) over `paths[t]`. `alpha` holds the
    pseudo-counts of all cells, 0 of those that never occur; paths over these are left
    out.
    """

    def __init__(self, sequences, n_states, n_symbols, unit=None, alpha=None):
        self.S, self.M, self.n = n_states, n_symbols, len(sequences)
        self.unit = np.ones(self.n) if unit is None else unit
        self.counts = []  # of every sequence (n_paths, cells): start, moves, symbols
        for x in sequences:
            every = []
            for path in itertools.product(range(n_states), repeat=len(x)):
                start = np.zeros(n_states)
                moves = np.zeros((n_states, n_states))
                shown = np.zeros((n_states, n_symbols))
                start[path[0]] = 1
                for i, j in itertools.pairwise(path):
                    moves[i, j] += 1
                for z, o in zip(path, x):
                    if o >= 0:
                        shown[z, o] += 1
                every.append(np.concatenate([start, moves.ravel(), shown.ravel()]))
            self.counts.append(np.array(every))
        sizes = [n_states] * (1 + n_states) + [n_symbols] * n_states
        self.ends = np.concatenate([[0], np.cumsum(sizes)])
        self.alpha = np.ones(self.ends[-1]) if alpha is None else alpha
        never = self.alpha == 0
        self.counts = [c[(c[:, never] == 0).all(axis=1)] for c in self.counts]

    def expected(self, Q):
        """Expected statistics (n, cells), in the unit of the constraints."""
        found = [q @ c for q, c in zip(Q, self.counts)]
        return self.unit[:, None] * np.array(found)

    def log_partition(self, a, Q):
        n, total = a @ self.expected(Q), 0.0
        for lo, hi in itertools.pairwise(self.ends):
            alpha, own = self.alpha[lo:hi], n[lo:hi]
            total += gammaln(alpha.sum()) - gammaln(alpha.sum() + own.sum())
            alpha, own = alpha[alpha > 0], own[alpha > 0]
            total += (gammaln(alpha + own) - gammaln(alpha)).sum()
        return total

    def logs(self, a, Q):
        n = self.alpha + a @ self.expected(Q)
        out = np.zeros_like(n)  # of what never occurs, whose counts are zero
        for lo, hi in itertools.pairwise(self.ends):
            own = lo + np.flatnonzero(self.alpha[lo:hi])
            out[own] = digamma(n[own]) - digamma(n[own].sum())
        return out

    def margins(self, a, Q):
        return self.expected(Q) @ self.logs(a, Q)

    def entropy(self, Q):
        found = [-(q * np.log(np.where(q > 0, q, 1.0))).sum() for q in Q]
        return self.unit * np.array(found)

    def bound(self, a, Q):
        logs = self.logs(a, Q)
        return self.unit * np.array([logsumexp(c @ logs) for c in self.counts])

    def update(self, a, Q):
        logs = self.logs(a, Q)
        scores = [c @ logs for c in self.counts]
        return [np.exp(s - logsumexp(s)) for s in scores]


def solve_round(problem, Q, level, rate, weight):
    """Greatest J = sum w_t (l_t lam_t + log(1 - lam_t / rate)) - log Z, and lam."""
    own = level - problem.entropy(Q)

    def minus(lam):
        a = weight * lam
        value = weight @ (own * lam + np.log1p(-lam / rate))
        slope = weight * (own - 1.0 / (rate - lam) - problem.margins(a, Q))
        return problem.log_partition(a, Q) - value, -slope

    n = len(weight)
    best = minimize(
        minus,
        np.full(n, 0.3 * rate),
        jac=True,
        bounds=[(0.0, rate * (1 - 1e-9))] * n,
        method="L-BFGS-B",
        options={"maxiter": 5000, "maxfun": 20000, "ftol": 1e-15, "gtol": 1e-10},
    )
    return -best.fun, weight * best.x


def divergences(problem, Q, level, rate, weight, n_rounds):
    """Divergence of every round, and the weights of the data in the last one."""
    history = []
    for _ in range(n_rounds):
        D, a = solve_round(problem, Q, level, rate, weight)
        history.append(D)
        last, Q = Q, problem.update(a, Q)
    return np.array(history), a, last
