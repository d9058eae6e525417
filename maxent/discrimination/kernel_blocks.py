"""Blocks of kernel machines: discriminants that are linear in feature space.

Two models of rows by a vector theta in feature space, with Gaussian priors,

    GaussianScores:  L(x) = <theta, phi(x)>               one-class SVM, two-class MED
    GaussianCentre:  L(x) = -|phi(x) - theta|^2 / 2       support vector data descr.

as blocks for :func:`solve_blocks` and models for :class:`MEDOutlierDetector`.

Source: Jaakkola, Meila & Jebara (1999), sections 2 and 4; Schoelkopf et al. (2001); Tax
& Duin (2004).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maxent._support import validation as v
from maxent._support.threads import effective_threads, single_threaded_blas
from maxent._support.typing import ArrayLike, FloatArray, Gamma, NamedKernel
from maxent.discrimination.grams.kernel_parameters import check_kernel, resolve_gamma
from maxent.discrimination.grams.vector_kernels import VectorKernel, apply_kernel
from maxent.families.priors.block import Block


class _KernelModel:
    """A kernel with its parameters; `block(X)` binds it to rows."""

    def __init__(
        self,
        kernel: NamedKernel = "rbf",
        *,
        gamma: Gamma = "scale",
        degree: int = 3,
        coef0: float = 0.0,
    ) -> None:
        check_kernel(kernel, gamma=gamma, degree=degree, coef0=coef0)
        if callable(kernel) or kernel == "precomputed":
            raise ValueError(
                f"kernel={v.shown(kernel)} is not one of the named kernels that a "
                "model can be stored with; use 'linear', 'rbf', 'poly' or 'sigmoid'."
            )
        self.kernel, self.gamma = kernel, gamma
        self.degree, self.coef0 = degree, coef0

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.kernel!r}, gamma={self.gamma!r})"

    _at_rest: FloatArray | None = None  # weights of the rows, beside multipliers

    @property
    def scales_with_rows(self) -> bool:
        """True if the rows that the model is bound to set its gamma."""
        return self.kernel != "linear" and isinstance(self.gamma, str)

    def weighted_by(self, X: FloatArray, weight: FloatArray) -> _KernelModel:
        """The model for these rows, of which one of weight two counts as two rows.

        It does so in the variance behind "scale", and in a centre without multipliers.
        """
        gamma = float(resolve_gamma(self.gamma, X, weight))
        model = type(self)(**{**self.get_spec(), "gamma": gamma})
        model._at_rest = weight
        return model

    def get_spec(self) -> dict[str, Any]:
        """Parameters by name, enough to build an equal value."""
        return {
            "kernel": self.kernel,
            "gamma": self.gamma,
            "degree": self.degree,
            "coef0": self.coef0,
        }

    def block(self, X: ArrayLike, base_weight: None = None) -> Block:
        """Bind the model to rows.

        Parameters
        ----------
        X : array-like (n, n_features)
        base_weight : None
            These models have no use for it.

        Returns
        -------
        Block
        """
        if base_weight is not None:
            raise ValueError("base_weight is for conjugate priors over distributions.")
        X = np.ascontiguousarray(v.as_doubles("X", X))
        if X.ndim != 2 or not len(X):
            raise ValueError(f"X has shape {X.shape}; rows of features are expected.")
        v.check_range("X", X)
        return self._block(self, X)  # type: ignore[attr-defined]

    def _parameters(self, X):
        return {
            "gamma": resolve_gamma(self.gamma, X),
            "degree": self.degree,
            "coef0": self.coef0,
        }


class _KernelBlock(Block):
    """K and a factor of it.

    Everything in here runs BLAS on one thread, so results do not depend on their
    number, in a solver or outside of it.
    """

    def __init__(self, model, X):
        self.model, self.X = model, X
        self.n_rows = len(X)
        self.parameters = model._parameters(X)
        at_rest = model._at_rest
        self.at_rest = np.ones(len(X)) if at_rest is None else at_rest
        everything = np.arange(len(X))
        with single_threaded_blas():
            kernel = VectorKernel(
                X, model.kernel, n_threads=effective_threads(), **self.parameters
            )
            self.K = kernel.block(everything, everything)
            values, vectors = np.linalg.eigh(self.K)
        self.diagonal = self.K.diagonal().copy()
        if values[0] < -1e-8 * max(values[-1], 0.0):
            raise ValueError(
                f"kernel={model.kernel!r} is not positive semidefinite on these rows: "
                f"it has the eigenvalue {values[0]:.3g}. Use another kernel."
            )
        keep = values > 1e-14 * values[-1]
        self.root = vectors[:, keep] * np.sqrt(values[keep])
        self.rank = self.root.shape[1]

    def product(self, a):
        """K a."""
        with single_threaded_blas():
            return self.K @ a

    def squared_norm(self, a):
        """a' K a."""
        with single_threaded_blas():
            return float(a @ (self.K @ a))

    def posterior(self, a):
        """Return the posterior that scores new rows: rows, kernel and weights."""
        at = np.flatnonzero(a)
        return KernelPosterior(
            self.model, self.X[at], a[at], self.parameters["gamma"], *self._scalars(a)
        )

    def score(self, a, X):
        """Expected value of L at new rows, (len(X),)."""
        return self.posterior(a).expected_log_prob(X)


class GaussianScores(_KernelModel):
    """L(x) = <theta, phi(x)> with theta ~ N(0, I); log Z(a) = a' K a / 2.

    Parameters
    ----------
    kernel : {"linear", "rbf", "poly", "sigmoid"}, default="rbf"
    gamma, degree, coef0
        As for :class:`MEDClassifier`; in a :class:`MEDOutlierDetector` the variance
        behind "scale" is that of the weighted rows, in `block` that of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.discrimination import GaussianScores
    >>> block = GaussianScores("linear").block([[1.0, 0.0], [0.0, 2.0]])
    >>> block.log_partition(np.ones(2))
    2.5
    """

    class _block(_KernelBlock):
        def log_partition(self, a):
            return 0.5 * self.squared_norm(a)

        def mean(self, a):
            return self.product(a)

        def hessian_factor(self, a):
            return self.root

        def _scalars(self, a):
            return 1.0, 0.0


class GaussianCentre(_KernelModel):
    """``L(x) = -|phi(x) - theta|^2 / 2`` with a flat prior over the centre theta.

    log Z(a) = a' K a / (2 sum a) - sum_t a_t K_tt / 2: the part of the Gaussian
    integral that depends on how weight is distributed over rows.

    Parameters
    ----------
    kernel : {"linear", "rbf", "poly", "sigmoid"}, default="rbf"
    gamma, degree, coef0
        As for :class:`MEDClassifier`; in a :class:`MEDOutlierDetector` the variance
        behind "scale" is that of the weighted rows, in `block` that of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.discrimination import GaussianCentre
    >>> block = GaussianCentre("linear").block([[1.0], [3.0]])
    >>> block.mean(np.ones(2))
    array([-0.5, -0.5])
    """

    class _block(_KernelBlock):
        def log_partition(self, a):
            total = float(a.sum())
            if not a.any():
                return 0.0
            if not total > 0:
                return np.inf
            return 0.5 * (self.squared_norm(a) / total - float(a @ self.diagonal))

        def mean(self, a):
            total = float(a.sum())
            if not a.any():
                a = self.at_rest
                total = float(a.sum())
            c = self.product(a) / total
            return c - 0.5 * (self.diagonal + float(a @ c) / total)

        def hessian_factor(self, a):
            total = float(a.sum())
            with single_threaded_blas():
                return (self.root - (a @ self.root) / total) / np.sqrt(total)

        largest = 0.0

        def posterior(self, a):
            # without weights the centre is where `mean` has it
            return super().posterior(a if a.any() else self.at_rest)

        def max_step(self, a, direction):
            change = float(direction.sum())
            return float(a.sum()) / -change if change < 0 else np.inf

        def _scalars(self, a):
            total = float(a.sum())
            return 1.0 / total, self.squared_norm(a) / total**2


class KernelPosterior:
    """A fitted kernel model: scores of new rows.

    Parameters
    ----------
    model : GaussianScores or GaussianCentre
    X : ndarray (n, n_features)
        Rows with weight.
    weight : ndarray (n,)
    gamma : float
    scale, norm : float
        Factor of the weighted kernel values, and squared norm of the centre.
    """

    def __init__(self, model, X, weight, gamma, scale, norm):
        if not isinstance(model, _KernelModel):
            raise ValueError(f"model={v.shown(model)} is not a kernel model.")
        X, weight = v.as_doubles("X", X), v.as_doubles("weight", weight)
        if X.ndim != 2 or weight.shape != (len(X),):
            raise ValueError(
                f"X has shape {X.shape} and weight {weight.shape}; they must be "
                "(n, n_features) and (n,)."
            )
        for name, array in (("X", X), ("weight", weight)):
            if not np.isfinite(array).all():
                raise ValueError(f"{name} has NaN or infinite entries.")
        self.model, self.X, self.weight = model, X, weight
        self.gamma = v.check_number("gamma", gamma)
        self.scale = v.check_number("scale", scale)
        self.norm = v.check_number("norm", norm)

    def get_spec(self) -> dict[str, Any]:
        """Parameters by name, enough to build an equal value."""
        return {
            "model": self.model,
            "X": self.X,
            "weight": self.weight,
            "gamma": self.gamma,
            "scale": self.scale,
            "norm": self.norm,
        }

    def expected_log_prob(self, X):
        """Expected value of L at new rows, (len(X),)."""
        X = np.ascontiguousarray(v.as_doubles("X", X))
        if X.ndim != 2 or X.shape[1] != self.X.shape[1]:
            raise ValueError(
                f"X has shape {X.shape}; rows of {self.X.shape[1]} features are "
                "expected."
            )
        model = self.model
        options = {
            "gamma": self.gamma,
            "degree": model.degree,
            "coef0": model.coef0,
        }
        values = np.zeros(len(X))
        if len(self.X):
            with single_threaded_blas():
                sums = apply_kernel(
                    X,
                    self.X,
                    self.weight[:, None],
                    model.kernel,
                    n_threads=effective_threads(),
                    **options,
                )
            values = self.scale * sums.reshape(-1)
        if isinstance(model, GaussianCentre):
            own = VectorKernel(X, model.kernel, **options).diagonal()
            values = values - 0.5 * (own + self.norm)
        return values
