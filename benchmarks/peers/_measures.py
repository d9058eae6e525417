"""How good is a solution? Recomputed in double precision, the same way for everyone.

Nothing here uses the package that is being measured: kernel values come from
scikit-learn in double precision, potentials and losses are written out.

A two-class machine is given by signed multipliers a_t = y_t lam_t, its bias b and the
upper bound C of the multipliers:

    maximise  sum_t phi(lam_t) - a' K a / 2      f = K a + b
    hinge         phi = lam                      loss C max(0, 1 - m)
    exponential   phi = lam + w log(1 - lam / C) loss w psi(rate (1 - m)),  w = C / rate

with psi(x) = x - 1 - log x above 1 and zero below.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.special import entr, expit
from sklearn.metrics.pairwise import rbf_kernel


@dataclass
class Quality:
    """What a solution reached.

    Attributes
    ----------
    violation : float
        Largest violation of the optimality condition, in margin units:
        max over rows that may move up minus min over rows that may move down.
    relative_gap : float
        Primal minus dual objective over 1 + dual objective.
    objective : float
        Dual objective.
    """

    violation: float
    relative_gap: float
    objective: float

    @property
    def columns(self):
        """Cells for a table."""
        return f"{self.violation:.1e}", f"{self.relative_gap:.1e}"


def rbf_values(X, support, a, gamma, rows=1000):
    """K a over all rows, by blocks of rows, in double precision."""
    X = X.astype(np.float64)
    Z, a = X[support], np.asarray(a, dtype=np.float64)
    return np.concatenate(
        [
            rbf_kernel(X[lo : lo + rows], Z, gamma=gamma) @ a
            for lo in range(0, X.shape[0], rows)
        ]
    )


def psi(x):
    """x - 1 - log x where x > 1, else 0."""
    x = np.maximum(x, 1.0)
    return x - 1.0 - np.log(x)


def potential_and_slope(lam, C, sharpness):
    """phi(lam) and phi'(lam); sharpness None is the hinge."""
    if sharpness is None:
        return lam, np.ones_like(lam)
    weight = C / sharpness
    return lam + weight * np.log1p(-lam / C), 1.0 - weight / (C - lam)


def loss(m, C, sharpness):
    """Loss of the signed margins m."""
    if sharpness is None:
        return C * np.maximum(0.0, 1.0 - m)
    return C / sharpness * psi(sharpness * (1.0 - m))


def binary_quality(y, lam, f, b, C, sharpness=None):
    """Violation and gap of a two-class kernel machine with a free bias.

    Parameters
    ----------
    y : ndarray (n,) of -1 and +1
    lam : ndarray (n,)
        Multipliers >= 0.
    f : ndarray (n,)
        K (y lam), without the bias.
    b : float
        The bias that the solution came with.
    C : float
    sharpness : float or None
        Of the exponential prior; None for the hinge.
    """
    phi, slope = potential_and_slope(lam, C, sharpness)
    v = y * slope - f
    # hinge multipliers may rest on the bound, from where they move one way only
    bound = lam >= C * (1.0 - 1e-6) if sharpness is None else np.zeros(len(lam), bool)
    up = np.where(y > 0, ~bound, lam > 0)
    low = np.where(y > 0, lam > 0, ~bound)
    quadratic = 0.5 * float((y * lam) @ f)
    dual = float(phi.sum()) - quadratic
    primal = quadratic + float(loss(y * (f + b), C, sharpness).sum())
    return Quality(
        float(v[up].max() - v[low].min()), (primal - dual) / (1.0 + dual), dual
    )


def rbf_machine_quality(model, X, y, C, gamma, sharpness=None):
    """Quality of a fitted two-class RBF machine with scikit-learn's attributes.

    Parameters
    ----------
    model : estimator
        With `support_`, `dual_coef_`, `intercept_`.
    X : ndarray or CSR (n, d)
    y : ndarray (n,) of -1 and +1, +1 for the class of positive decision values.
    C, gamma, sharpness : float
    """
    a = model.dual_coef_
    a = np.asarray(a.toarray() if sp.issparse(a) else a, dtype=np.float64).ravel()
    support = np.asarray(model.support_)
    f = rbf_values(X, support, a, gamma)
    lam = np.zeros(len(y))
    lam[support] = y[support] * a
    if lam.min(initial=0.0) < -1e-6 * C:
        raise AssertionError("a multiplier has the wrong sign: labels are mixed up")
    lam = np.maximum(lam, 0.0)
    return binary_quality(y, lam, f, float(model.intercept_[0]), C, sharpness)


def linear_primal(X, y, w, b, C, kind, sharpness=None, penalise_bias=True):
    """Primal objective |w|^2/2 (+ b^2/2) + losses of a linear machine.

    Parameters
    ----------
    X : ndarray or CSR (n, d)
    y : ndarray (n,) of -1 and +1
    w : ndarray (d,)
    b : float
    kind : {"exponential", "hinge", "logistic"}
    """
    m = y * (X @ w + b)
    if kind == "logistic":
        total = C * float(np.logaddexp(0.0, -m).sum())
    else:
        total = float(loss(m, C, sharpness if kind == "exponential" else None).sum())
    return 0.5 * float(w @ w) + 0.5 * b * b * penalise_bias + total


def linear_dual(X, y, lam, C, kind, sharpness=None):
    """Dual objective of a linear machine with a penalised bias (variance one).

    A lower bound of `linear_primal` for any multipliers 0 <= lam <= C.
    """
    a = y * lam
    w, b = X.T @ a, float(a.sum())
    if kind == "logistic":
        u = lam / C
        potential = C * float((entr(u) + entr(1.0 - u)).sum())
    else:
        sharpness = sharpness if kind == "exponential" else None
        potential = float(potential_and_slope(lam, C, sharpness)[0].sum())
    return potential - 0.5 * float(w @ w) - 0.5 * b * b


def logistic_gradient(X, y, w, b, C):
    """Norm of the gradient of |w|^2/2 + C sum log(1 + exp(-m)), over that at zero."""

    def norm(w, b):
        slope = -C * y * expit(-y * (X @ w + b))
        return np.linalg.norm(np.append(w + X.T @ slope, slope.sum()))

    return float(norm(w, b) / norm(np.zeros_like(w), 0.0))


def joint_quality(codes, coefficients, f, b, C, sharpness):
    """Relative gap of a joint machine with one constraint for each wrong class.

    Parameters
    ----------
    codes : ndarray of int (n,)
    coefficients : ndarray (n, m)
        Of the class scores: v beta, with v = 1/2.
    f : ndarray (n, m)
        K @ coefficients.
    b : ndarray (m,)
    C, sharpness : float
        Of the exponential prior.
    """
    n, m = coefficients.shape
    wrong = np.arange(m)[None, :] != codes[:, None]
    lam = np.maximum(-2.0 * coefficients, 0.0)[wrong]
    phi, _ = potential_and_slope(lam, C, sharpness)
    # trace(beta' K beta) v / 2 with beta = 2 coefficients, v = 1/2
    quadratic = float((coefficients * f).sum())
    scores = f + b
    margins = (scores[np.arange(n), codes][:, None] - scores)[wrong]
    dual = float(phi.sum()) - quadratic
    primal = quadratic + float(loss(margins, C, sharpness).sum())
    return (primal - dual) / (1.0 + dual)
