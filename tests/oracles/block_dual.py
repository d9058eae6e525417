"""The dual over blocks by a general solver, and its gap from the definitions."""

import numpy as np
from scipy.optimize import minimize


def objective(lam, blocks, maps, prior, level, weight, variance=0.0, E=None):
    """J(lam) = sum w phi(lam / w) - sum log Z_s(A_s lam) - variance |E' lam|^2 / 2."""
    value = float(np.sum(weight * prior.potential(lam / weight)))
    value += float((level - prior.level) @ lam)
    for block, A in zip(blocks, maps, strict=True):
        value -= block.log_partition(A @ lam)
    if variance:
        value -= 0.5 * variance * float(np.sum((E.T @ lam) ** 2))
    return value


def margins(lam, blocks, maps):
    """Expected margin of every constraint, without a bias."""
    return sum(A.T @ b.mean(A @ lam) for b, A in zip(blocks, maps, strict=True))


def fenchel_young_gap(lam, m, prior, level, weight):
    """sum_r w_r [ ell(m_r) + lam_r m_r / w_r - phi(lam_r / w_r) ]."""
    total = 0.0
    for one, margin, at, w in zip(lam, m, level, weight, strict=True):
        total += w * prior.with_level(float(at)).fenchel_young(one / w, margin)
    return total


def solve(blocks, maps, prior, level, weight, bias=None, E=None):
    """The largest J, by SLSQP restarted until it moves no more.

    Entropies keep every multiplier inside its domain and have infinite slopes at the
    ends, which SLSQP cannot do with: there it is Newton's method.
    """
    n = maps[0].shape[1]
    variance = 0.0 if bias in (None, "flat") else bias
    limit = (1.0 - 1e-10) * prior.upper * weight
    args = (blocks, maps, prior, level, weight, variance, E)
    if prior.name == "logistic":
        return _newton(args, limit, E if bias == "flat" else None)

    def value(lam):
        J = objective(lam, *args)
        return 1e12 if np.isneginf(J) else -J

    def gradient(lam):
        if np.isneginf(objective(lam, *args)):
            return np.zeros(n)
        return -slope(lam, *args)

    constraints = []
    if bias == "flat":
        constraints = [{"type": "eq", "fun": lambda x: E.T @ x, "jac": lambda x: E.T}]
    lam = np.full(n, 1e-3)
    best = -np.inf
    for _ in range(10):
        found = minimize(
            value,
            lam,
            jac=gradient,
            method="SLSQP",
            bounds=[(0.0, top) for top in limit],
            constraints=constraints,
            options={"ftol": 1e-14, "maxiter": 2000},
        )
        if -found.fun <= best + 1e-12:
            break
        best, lam = -found.fun, np.clip(found.x, 0.0, limit)
    return best


def slope(lam, blocks, maps, prior, level, weight, variance=0.0, E=None):
    """Gradient of the objective."""
    out = prior.mean(lam / weight) - prior.level + level - margins(lam, blocks, maps)
    return out - variance * E @ (E.T @ lam) if variance else out


def _newton(args, limit, E):
    """Newton steps inside the domain, along E' lam = 0; halved until J rises."""
    blocks, maps, prior, _, weight, variance, columns = args
    n = len(limit)
    lam = np.full(n, 1e-4)
    E = np.zeros((n, 0)) if E is None else E
    k = E.shape[1]
    if k:  # balanced for two classes
        lam /= np.where(E[:, 0] > 0, (E[:, 0] > 0).sum(), (E[:, 0] < 0).sum())
    for _ in range(300):
        H = np.diag(prior.curvature(lam / weight) / weight)
        for block, A in zip(blocks, maps, strict=True):
            F = A.T @ block.hessian_factor(A @ lam)
            H += F @ F.T
        if variance:
            H += variance * columns @ columns.T
        g = slope(lam, *args)
        both = np.block([[H, E], [E.T, np.zeros((k, k))]])
        step = np.linalg.solve(both, np.append(g, np.zeros(k)))[:n]
        J, t = objective(lam, *args), 1.0
        while t > 1e-14:
            new = lam + t * step
            if (new > 0).all() and (new < limit).all() and objective(new, *args) >= J:
                break
            t *= 0.5
        else:
            break
        lam = new
        if t == 1.0 and g @ step < 1e-14:
            break
    return objective(lam, *args)
