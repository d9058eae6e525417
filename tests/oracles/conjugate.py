"""Partition functions of conjugate models by ways that share nothing with the package.

Grids for one or two parameters, products of predictive distributions for whole numbers
of rows, and averages over draws for weights of any sign.
"""

import itertools

import numpy as np
from scipy import stats
from scipy.special import logsumexp


def log_integral(log_density, *axes):
    """Log of an integral over a grid, by the trapezoidal rule.

    It converges faster than any power for smooth integrands that vanish at the ends.
    """
    mesh = np.meshgrid(*axes, indexing="ij")
    steps = np.prod([axis[1] - axis[0] for axis in axes])
    return float(logsumexp(log_density(*mesh)) + np.log(steps))


def log_mean_exp(values):
    """(log of the mean of exp(values), its standard error)."""
    top = values.max()
    w = np.exp(values - top)
    error = w.std() / np.sqrt(len(w)) / w.mean()
    return float(top + np.log(w.mean())), float(error)


def weighted_log_gaussian(x, a, m, v):
    """sum_t a_t log N(x_t; m, v) for arrays of means and variances."""
    total, first, second = a.sum(), a @ x, a @ x**2
    spread = second - 2.0 * m * first + m**2 * total
    return -0.5 * total * np.log(2.0 * np.pi * v) - 0.5 * spread / v


def wishart_log_partition_1d(prior, x, a, n=1200):
    """log E exp(sum a log N(x; m, v)) for one feature, on a grid of m and log v.

    With zero precision, degrees of freedom and scale the prior is v^(-3/2).
    """
    kappa, nu, scale, m0 = (
        prior.mean_precision,
        prior.df,
        float(prior.scale[0, 0]),
        float(prior.mean[0]),
    )

    def log_prior(m, logv):
        v = np.exp(logv)
        # density over (m, log v): one power of v more than over (m, v)
        out = -0.5 * (nu + 1.0) * logv - 0.5 * (scale + kappa * (m - m0) ** 2) / v
        return out

    def log_joint(weight):
        def f(u, logv):
            v = np.exp(logv)
            m = centre + np.sqrt(v) * u  # the mean on the scale of the noise
            out = log_prior(m, logv) + 0.5 * logv
            return out + weighted_log_gaussian(x, weight, m, v)

        return f

    total = kappa + a.sum()
    centre = (kappa * m0 + a @ x) / total
    width = 14.0 / np.sqrt(min(total, kappa) if kappa else total)
    reach = width + abs(centre - m0) / 0.05
    grid = np.linspace(-reach, reach, 2 * n)
    logv = np.linspace(-12.0, 22.0, n)
    top = log_integral(log_joint(a), grid, logv)
    return top, log_integral(log_joint(np.zeros_like(a)), grid, logv)


def wishart_sequential(prior, X):
    """log of the product of the Student predictives, one row after the other."""
    kappa, nu, m, S = prior.mean_precision, prior.df, prior.mean, prior.scale
    d, total = len(m), 0.0
    for x in X:
        dof = nu - d + 1.0
        shape = S * (kappa + 1.0) / (kappa * dof)
        total += stats.multivariate_t(m, shape, dof).logpdf(x)
        S = S + kappa / (kappa + 1.0) * np.outer(x - m, x - m)
        m = (kappa * m + x) / (kappa + 1.0)
        kappa, nu = kappa + 1.0, nu + 1.0
    return total


def wishart_draws(prior, rng, n):
    """Means (n, d) and covariances (n, d, d) from a proper prior."""
    V = stats.invwishart(prior.df, prior.scale).rvs(n, random_state=rng)
    V = np.reshape(V, (n, len(prior.mean), len(prior.mean)))
    root = np.linalg.cholesky(V) / np.sqrt(prior.mean_precision)
    z = rng.normal(size=(n, len(prior.mean)))
    return prior.mean + np.einsum("nij,nj->ni", root, z), V


def gaussian_log_likelihoods(m, V, X):
    """log N(x_t; m_i, V_i), (draws, rows)."""
    d = X.shape[1]
    r = X[None] - m[:, None]
    q = np.einsum("nti,nti->nt", r @ np.linalg.inv(V), r)
    log_det = np.linalg.slogdet(V)[1]
    return -0.5 * (q + d * np.log(2.0 * np.pi) + log_det[:, None])


def normal_gamma_sequential(prior, X):
    """log of the product of Student predictives of y given z."""
    L, m, a, b = prior.precision, prior.mean, prior.shape, prior.rate
    total = 0.0
    for y, *z in X:
        z = np.array(z)
        scale = np.sqrt(b / a * (1.0 + z @ np.linalg.solve(L, z)))
        total += stats.t(2.0 * a, z @ m, scale).logpdf(y)
        new = L + np.outer(z, z)
        after = np.linalg.solve(new, L @ m + z * y)
        b = b + 0.5 * (y**2 + m @ L @ m - after @ new @ after)
        L, m, a = new, after, a + 0.5
    return total


def table_sequential(tables, parents, rows):
    """log of the product of predictives of a Bayes net, by counting in a dictionary."""
    seen, total = {}, 0.0
    for row in rows:
        for k, found in enumerate(parents):
            if row[k] < 0 or any(row[p] < 0 for p in found):
                continue
            context = tuple(row[p] for p in found)
            sizes = [max(tables[p].shape[1], 1) for p in found]
            place = int(np.ravel_multi_index(context, sizes)) if found else 0
            prior = tables[k][place]
            key = (k, context)
            counts = seen.setdefault(key, np.zeros(len(prior)))
            total += np.log((prior + counts)[row[k]] / (prior + counts).sum())
            counts[row[k]] += 1.0
    return total


def table_draws(tables, rng, n):
    """Draws of every table, each (n, q, r)."""
    return [
        np.stack([rng.dirichlet(row, size=n) for row in table], axis=1)
        for table in tables
    ]


def net_log_likelihoods(draws, parents, rows):
    """log p(x_t | theta_i), (draws, rows); factors with a missing value left out."""
    out = np.zeros((len(draws[0]), len(rows)))
    for t, row in enumerate(rows):
        for k, found in enumerate(parents):
            if row[k] < 0 or any(row[p] < 0 for p in found):
                continue
            sizes = [draws[p].shape[2] for p in found]
            place = (
                int(np.ravel_multi_index([row[p] for p in found], sizes or (1,)))
                if found
                else 0
            )
            out[:, t] += np.log(draws[k][:, place, row[k]])
    return out


def every_row(sizes):
    """All rows of categorical features, (prod sizes, n_features)."""
    return np.array(list(itertools.product(*map(range, sizes))))
