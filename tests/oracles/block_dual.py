"""The dual over blocks by a general solver, and its gap from the definitions."""

import numpy as np


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
    """The largest J to 1e-9 or so, by a barrier method with Newton steps.

    J(lam) + mu sum log lam_r + mu sum log(upper_r - lam_r) is maximised for falling mu;
    its maximum is below that of J by at most 2 n mu (Boyd & Vandenberghe 2004, section
    11.2), 1e-9 for n of 50.
    """
    n = maps[0].shape[1]
    variance = 0.0 if bias in (None, "flat") else bias
    limit = prior.upper * weight
    args = (blocks, maps, prior, level, weight, variance, E)
    E = E if bias == "flat" else np.zeros((n, 0))
    lam = np.full(n, 1e-3) * np.minimum(limit, 1.0)
    if E.shape[1]:  # balanced for two classes
        lam /= np.where(E[:, 0] > 0, (E[:, 0] > 0).sum(), (E[:, 0] < 0).sum())
    while np.isneginf(objective(lam, *args)):
        lam *= 0.5
    for mu in 10.0 ** np.arange(0.0, -11.5, -1.0):
        lam = _newton(lam, args, limit, E, mu)
    return objective(lam, *args)


def _newton(lam, args, limit, E, mu):
    """Newton steps on J and its barrier along E' lam = 0, halved until both rise."""
    blocks, maps, prior, _, weight, variance, columns = args
    n, k = len(limit), E.shape[1]

    def total(lam):
        if not ((lam > 0).all() and (lam < limit).all()):
            return -np.inf
        ends = np.log(limit - lam)[np.isfinite(limit)].sum()
        return objective(lam, *args) + mu * (np.log(lam).sum() + ends)

    J = total(lam)
    for _ in range(100):
        H = np.diag(prior.curvature(lam / weight) / weight)
        H += np.diag(mu / lam**2 + mu / (limit - lam) ** 2)
        for block, A in zip(blocks, maps, strict=True):
            F = A.T @ block.hessian_factor(A @ lam)
            H += F @ F.T
        if variance:
            H += variance * columns @ columns.T
        g = slope(lam, *args) + mu / lam - mu / (limit - lam)
        both = np.block([[H, E], [E.T, np.zeros((k, k))]])
        scale = 1.0 / np.sqrt(np.append(np.diag(H), np.ones(k)))
        step = scale * np.linalg.solve(
            scale[:, None] * both * scale, scale * np.append(g, -(E.T @ lam))
        )
        gain, step, t = float(g @ step[:n]), step[:n], 1.0
        while t > 1e-14 and not total(lam + t * step) >= J + 1e-4 * t * gain:
            t *= 0.5
        if t <= 1e-14 or gain < 1e-3 * mu:
            break
        lam = lam + t * step
        J = total(lam)
    return lam


def slope(lam, blocks, maps, prior, level, weight, variance=0.0, E=None):
    """Gradient of the objective."""
    out = prior.mean(lam / weight) - prior.level + level - margins(lam, blocks, maps)
    return out - variance * E @ (E.T @ lam) if variance else out
