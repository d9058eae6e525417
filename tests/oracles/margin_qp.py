"""Margin problems as general cone programs in (w, xi), for cvxopt."""

import numpy as np
from cvxopt import matrix, solvers

OPTIONS = {
    "show_progress": False,
    "abstol": 1e-11,
    "reltol": 1e-11,
    "feastol": 1e-11,
    "maxiters": 200,
}


def solve(D, ell, c, of_row, center=None, prox=0.0, radius=None):
    """(w, objective) of min |w|^2/2 + prox/2 |w - center|^2 + sum c xi."""
    rows, d = D.shape
    n = len(c)
    center = np.zeros(d) if center is None else center
    P = np.zeros((d + n, d + n))
    P[:d, :d] = (1 + prox) * np.eye(d)
    q = np.concatenate([-prox * center, c])
    # -D w - xi <= -ell, -xi <= 0
    G = np.zeros((rows + n, d + n))
    G[:rows, :d] = -D
    G[np.arange(rows), d + of_row] = -1.0
    G[rows + np.arange(n), d + np.arange(n)] = -1.0
    h = np.concatenate([-ell, np.zeros(n)])
    dims = {"l": rows + n, "q": [], "s": []}
    if radius is not None:
        cone = np.zeros((d + 1, d + n))
        cone[1:, :d] = -np.eye(d)
        G = np.vstack([G, cone])
        h = np.concatenate([h, [radius], -center])
        dims["q"] = [d + 1]
    found = solvers.coneqp(
        matrix(P), matrix(q), matrix(G), matrix(h), dims, options=OPTIONS
    )
    assert found["status"] in ("optimal", "unknown")
    w = np.array(found["x"]).ravel()[:d]
    return w, objective(w, D, ell, c, of_row, center, prox)


def objective(w, D, ell, c, of_row, center=None, prox=0.0):
    """The primal objective at weights, straight from its definition."""
    value = 0.5 * w @ w
    if prox:
        value += 0.5 * prox * np.sum((w - center) ** 2)
    for i, weight in enumerate(c):
        own = ell[of_row == i] - D[of_row == i] @ w
        value += weight * max(0.0, own.max(initial=-np.inf))
    return float(value)
