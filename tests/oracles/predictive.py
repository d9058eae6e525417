"""Predictive densities of weighted rows: grids, counting, and lists of all trees."""

import itertools

import numpy as np
from scipy import stats
from scipy.special import logsumexp

from oracles.conjugate import log_integral, weighted_log_gaussian
from oracles.tree_classifiers import (
    dirichlet_log_partitions,
    pair_tables,
    structure_prior,
    tree_log_probs,
)


def class_weights(model, y):
    """Weights (n_classes, n) of all rows in every class: its own, and multipliers."""
    own = np.equal.outer(model.classes_, y).astype(float)
    beta = model.dual_coef_
    beta = np.vstack([-beta, beta]) if len(beta) == 1 else beta
    own[:, model.support_] += beta
    return own


def gaussian_by_grid(x, weight, new, n=900):
    """log E N(new; m, v) under v^(-3/2) prod_t N(x_t; m, v)^weight_t, one feature."""
    centre = weight @ x / weight.sum()
    spread = weight @ (x - centre) ** 2 / weight.sum()
    u = np.linspace(-14.0, 14.0, 2 * n) * 2.0 / np.sqrt(weight.sum())
    logv = np.log(spread) + np.linspace(-5.0, 9.0, n)

    def evidence(x, a):
        def log_joint(u, logv):
            v = np.exp(logv)
            m = centre + np.sqrt(v) * u  # m on the scale of the noise
            # v^(-3/2) d(m, v) = d(u, log v)
            return weighted_log_gaussian(x, a, m, v)

        return log_integral(log_joint, u, logv)

    before = evidence(x, weight)
    return np.array(
        [evidence(np.append(x, z), np.append(weight, 1.0)) - before for z in new]
    )


def gaussian_by_student(X, weight, new):
    """The same for any dimension d, from v^(-(d + 2) / 2): a Student distribution."""
    total, d = weight.sum(), X.shape[1]
    centre = weight @ X / total
    scatter = (X - centre).T @ (weight[:, None] * (X - centre))
    dof = total - d + 1.0
    shape = scatter * (total + 1.0) / (total * dof)
    return stats.multivariate_t(centre, shape, dof).logpdf(new)


def net_by_counting(X, weight, new, sizes, parents, ess):
    """log E p(new) of a Bayes net with Dirichlet tables, by loops over rows."""
    out = np.zeros(len(new))
    for k, found in enumerate(parents):
        contexts = list(itertools.product(*[range(sizes[p]) for p in found]))
        tables = {
            c: np.full(sizes[k], ess / sizes[k] / len(contexts)) for c in contexts
        }
        for row, w in zip(X, weight, strict=True):
            tables[tuple(row[p] for p in found)][row[k]] += w
        for t, row in enumerate(new):
            table = tables[tuple(row[p] for p in found)]
            out[t] += np.log(table[row[k]] / table.sum())
    return out


def fixed_trees(X, own, log_weights, new, sizes, ess):
    """log E_E T_E(new), tables from the class's rows, over the list of all trees."""
    tables = pair_tables(X, own, sizes, ess)
    by_tree = tree_log_probs(tables, new, len(sizes))
    return logsumexp(structure_prior(log_weights)[:, None] + by_tree, axis=0)


def dirichlet_trees(X, weight, new, sizes, ess):
    """log E T_E(new) with random tables, by evidence with and without the new row."""
    tables, n = pair_tables(X[:0], [], sizes, ess), len(sizes)
    before = logsumexp(dirichlet_log_partitions(tables, X, weight, n))
    after = [
        dirichlet_log_partitions(tables, np.vstack([X, row]), np.append(weight, 1.0), n)
        for row in new
    ]
    return logsumexp(after, axis=1) - before
