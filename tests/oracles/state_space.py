"""Dense joint Gaussians of linear dynamical systems; written apart from the package."""

import itertools
import math

import numpy as np


def at(X, t, axes):
    """Parameter of step t: constant, or with a leading axis of steps."""
    return X[t] if X.ndim > axes else X


def joint(model, T):
    """Mean and covariance of the states and of the observations 0 .. T, dense."""
    n, d = model.n_states, model.n_features
    size = (T + 1) * n
    # s = G (stacked noise) with s_t = A_t s_{t-1} + noise_t
    G, mean, Q = np.eye(size), np.zeros(size), np.zeros((size, size))
    mean[:n], Q[:n, :n] = model.initial_mean, model.initial_cov
    for t in range(1, T + 1):
        here, before = slice(t * n, t * n + n), slice(t * n - n, t * n)
        A = at(model.transition, t, 2)
        mean[here] = A @ mean[before] + at(model.transition_offset, t, 1)
        G[here] += A @ G[before]
        Q[here, here] = at(model.transition_cov, t, 2)
    S = G @ Q @ G.T
    H, c = np.zeros(((T + 1) * d, size)), np.zeros((T + 1) * d)
    R = np.zeros(((T + 1) * d, (T + 1) * d))
    for t in range(T + 1):
        rows = slice(t * d, t * d + d)
        H[rows, t * n : t * n + n] = at(model.observation, t, 2)
        c[rows] = at(model.observation_offset, t, 1)
        R[rows, rows] = at(model.observation_cov, t, 2)
    return mean, S, H @ mean + c, H @ S @ H.T + R, H @ S


def log_density(x, mean, cov):
    """Of one vector; entries that are NaN are left out."""
    x = np.ravel(x)
    seen = ~np.isnan(x)
    r, cov = (x - mean)[seen], cov[np.ix_(seen, seen)]
    sign, log_det = np.linalg.slogdet(cov)
    assert sign > 0
    return -0.5 * (
        log_det + r @ np.linalg.solve(cov, r) + len(r) * math.log(2 * math.pi)
    )


def conditioned(model, x):
    """Mean and covariance of all states given the sequence."""
    mean, S, mx, Sx, HS = joint(model, len(x) - 1)
    seen = ~np.isnan(np.ravel(x))
    gain = np.linalg.solve(Sx[np.ix_(seen, seen)], HS[seen]).T
    return mean + gain @ (np.ravel(x) - mx)[seen], S - gain @ HS[seen]


def log_affinity(mean, cov, mean2, cov2, rho):
    """log int N(x; mean, cov)^rho N(x; mean2, cov2)^rho dx by completing the square."""
    K, K2 = np.linalg.inv(cov), np.linalg.inv(cov2)
    D = len(mean)
    both = rho * (K + K2)
    h = rho * (K @ mean + K2 @ mean2)
    constant = rho * (mean @ K @ mean + mean2 @ K2 @ mean2)

    def log_det(M):
        return np.linalg.slogdet(M)[1]

    value = -rho * D * math.log(2 * math.pi) - 0.5 * rho * (
        log_det(cov) + log_det(cov2)
    )
    value += 0.5 * (h @ np.linalg.solve(both, h) - constant)
    return value + 0.5 * D * math.log(2 * math.pi) - 0.5 * log_det(both)


def lds_log_kernel(p, q, T, rho):
    """Exact kernel from the dense joint laws."""
    _, _, m, S, _ = joint(p, T)
    _, _, m2, S2, _ = joint(q, T)
    return log_affinity(m, S, m2, S2, rho)


def paths(n_values, length):
    """All sequences of values 0 .. n_values - 1."""
    return itertools.product(range(n_values), repeat=length)


def switching_mean_field(model, x, sweeps):
    """Regime probabilities (T, K) of Q(s) Q(q) after sweeps from even ones.

    Q(s) is a dense Gaussian, Q(q) a table over all paths of regimes.
    """
    T, n, K = len(x) - 1, model.n_states, model.n_regimes
    every = np.array(list(paths(K, T)))
    log_path = np.log(model.start)[every[:, 0]]
    for t in range(1, T):
        log_path = log_path + np.log(model.switching)[every[:, t - 1], every[:, t]]
    gamma = np.full((T, K), 1.0 / K)
    for _ in range(sweeps):
        m, S = _states_given_regimes(model, x, gamma)
        weight = np.array(log_path)
        for t in range(T):
            two = slice(t * n, (t + 2) * n)
            evidence = np.empty(K)
            for k in range(K):
                Q = model.transition_cov[k]
                D = np.hstack([-model.transition[k], np.eye(n)])
                r = D @ m[two] - model.transition_offset[k]
                scatter = np.outer(r, r) + D @ S[two, two] @ D.T
                evidence[k] = -0.5 * (
                    np.linalg.slogdet(Q)[1] + np.trace(np.linalg.solve(Q, scatter))
                )
            weight += evidence[every[:, t]]
        weight = np.exp(weight - weight.max())
        weight /= weight.sum()
        gamma = np.array(
            [[weight[every[:, t] == k].sum() for k in range(K)] for t in range(T)]
        )
    return gamma


def _states_given_regimes(model, x, gamma):
    """Mean and covariance of all states, transitions weighted by `gamma`."""
    n, size = model.n_states, len(x) * model.n_states
    J, h = np.zeros((size, size)), np.zeros(size)
    J[:n, :n] = np.linalg.inv(model.initial_cov)
    h[:n] = J[:n, :n] @ model.initial_mean
    for t, row in enumerate(gamma):
        two = slice(t * n, (t + 2) * n)
        for k, p in enumerate(row):
            D = np.hstack([-model.transition[k], np.eye(n)])
            half = p * D.T @ np.linalg.inv(model.transition_cov[k])
            J[two, two] += half @ D
            h[two] += half @ model.transition_offset[k]
    for t, seen in enumerate(x):
        here = slice(t * n, (t + 1) * n)
        half = model.observation.T @ np.linalg.inv(model.observation_cov)
        J[here, here] += half @ model.observation
        h[here] += half @ (seen - model.observation_offset)
    S = np.linalg.inv(J)
    return S @ h, S


def with_inputs(p, u):
    """Parameters of the same system of the steps of inputs u, whose offsets vary."""
    T = len(u)
    offsets = {
        "transition_offset": p["transition_offset"] + u @ p["transition_input"].T,
        "observation_offset": p["observation_offset"] + u @ p["observation_input"].T,
    }
    names = ("transition", "transition_cov", "observation", "observation_cov")
    fixed = {name: np.stack([p[name]] * T) for name in names}
    first = {name: p[name] for name in ("initial_mean", "initial_cov")}
    return {**fixed, **offsets, **first}


def diffuse(model, x, free, build):
    """Log-likelihood and posterior of all states, `free` ones of the first flat.

    By generalised least squares: x = m + X delta + N(0, S) and states alike. A flat
    number and a normal one, of any variance, have a sum as flat.
    `build` makes a model of parameters.
    """
    given = {k: np.array(v) for k, v in model.parameters().items()}
    given["initial_cov"][np.isinf(given["initial_cov"])] = 2.0
    at_zero = joint(build(**given), len(x) - 1)
    columns = []
    for j in np.flatnonzero(free):
        moved = {**given, "initial_mean": given["initial_mean"] + np.eye(len(free))[j]}
        columns.append(joint(build(**moved), len(x) - 1))
    mean, S, mx, Sx, HS = at_zero
    seen = ~np.isnan(np.ravel(x))
    X = np.array([c[2] - mx for c in columns]).T[seen]
    Z = np.array([c[0] - mean for c in columns]).T
    y, inverse = (np.ravel(x) - mx)[seen], np.linalg.inv(Sx[np.ix_(seen, seen)])
    K = np.linalg.inv(X.T @ inverse @ X)
    delta = K @ X.T @ inverse @ y
    r = y - X @ delta
    value = -0.5 * (
        r @ inverse @ r - np.linalg.slogdet(inverse)[1] + len(y) * math.log(2 * math.pi)
    )
    gain = HS[seen].T @ inverse
    left = Z - gain @ X
    states = mean + gain @ r + Z @ delta
    return (
        value + 0.5 * np.linalg.slogdet(K)[1],
        states,
        (S - gain @ HS[seen] + left @ K @ left.T),
    )
