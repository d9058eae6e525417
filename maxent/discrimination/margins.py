"""Margin priors: one potential, its conjugate loss and its domain each.

A margin prior P0(gamma) enters every maximum entropy discrimination solver through its
dual potential ``phi(lam) = -log E_P0 exp(-lam gamma)`` alone. The conjugate
``ell(m) = sup_lam phi(lam) - lam m`` is the loss that the machine minimises.

Source: Jaakkola, Meila & Jebara (1999), eq. (9)-(15), with the corrections listed on
the errata page of the documentation.
"""

from __future__ import annotations

import math
import numbers

import numpy as np

from maxent._core import potentials as _potentials
from maxent._support import validation as v

_VALUE, _SLOPE, _CURVATURE, _LOSS, _ARGMAX = range(5)


def _is_real(value):
    return isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))


def _finite(name, value):
    if not (_is_real(value) and math.isfinite(value)):
        raise ValueError(f"{name}={value!r} must be a finite number.")
    return float(value)


class MarginPrior:
    """Base class of the margin priors.

    Every prior is a unit function g of the dimensionless multiplier
    ``u = lam / rate``: ``phi(lam) = level * lam + g(lam / rate)``. A sample weight w
    stands for w independent copies of a row: ``phi_w(lam) = w phi(lam / w)``.

    Parameters
    ----------
    rate : float
        The papers' c, > 0, in 1 / margin units.
    level : float
        The papers' l, in margin units.

    Attributes
    ----------
    rate : float
        The papers' c: how sharply the prior is concentrated, in 1 / margin units.
    level : float
        The papers' location l: the margin asked for, in margin units.
    name : str
        The name under which estimators know the prior.
    upper : float
        Supremum of the multiplier of a row of weight one; may be infinite.
    prior_mean : float
        Mean margin under the prior: rows beyond it cost nothing.
    core_spec : tuple
        What the compiled functions take.

    See Also
    --------
    CustomMargin : A prior of your own, from three functions.
    """

    name = ""
    _kind = -1
    _upper = 1.0  # supremum of u
    _closed = False  # is u = upper attainable with a finite slope?

    def __init__(self, rate, level):
        self.rate = v.check_positive("rate", rate)
        self.level = _finite("level", level)

    # -- description ---------------------------------------------------------------
    @property
    def _shape(self):
        return 1.0

    @property
    def core_spec(self):
        """Tuple understood by the compiled kernels."""
        return (self._kind, self._shape, self._upper, 0, 0, 0)

    @property
    def upper(self):
        """Supremum of the multipliers for a row of weight one (may be infinite)."""
        return self._upper * self.rate

    @property
    def prior_mean(self):
        """Mean margin under the prior, phi'(0): where the loss starts."""
        return float(self.mean(0.0))

    def unit_weight(self, C):
        """Row weight for which `C` has the meaning it has in the estimators.

        It is the slope of the loss far below the margin (for the Gaussian prior the
        factor of ``d**2 / 2``).

        Parameters
        ----------
        C : float
            The estimators' C, > 0.

        Returns
        -------
        float
            The weight that every row carries: ``C / rate`` for most priors.
        """
        return C / self.rate

    def parameters(self):
        """Constructor arguments as a dict.

        Returns
        -------
        dict
            Names and values.
        """
        return {"rate": self.rate, "level": self.level}

    def with_level(self, level):
        """Same prior, moved to another level.

        Parameters
        ----------
        level : float
            In margin units.

        Returns
        -------
        MarginPrior
            A new object; this one is left as it is.

        Raises
        ------
        ValueError
            For a :class:`CustomMargin`, whose level is inside its functions.
        """
        return type(self)(**{**self.parameters(), "level": level})

    def get_spec(self):
        """JSON-able description, read back by :func:`margin_from_spec`.

        Returns
        -------
        dict
            The key "name" and the constructor arguments.

        Raises
        ------
        ValueError
            For a :class:`CustomMargin`: compiled functions cannot be stored.
        """
        return {"name": self.name, **self.parameters()}

    @classmethod
    def from_spec(cls, spec):
        """Prior described by a dict of constructor arguments.

        Parameters
        ----------
        spec : dict
            As :meth:`get_spec` returns it.

        Returns
        -------
        MarginPrior
            Of this class.
        """
        return cls(**{k: v for k, v in spec.items() if k != "name"})

    def __repr__(self):
        inside = ", ".join(f"{k}={v!r}" for k, v in self.parameters().items())
        return f"{type(self).__name__}({inside})"

    def __eq__(self, other):
        return type(self) is type(other) and self.parameters() == other.parameters()

    def __hash__(self):
        return hash((type(self), tuple(self.parameters().items())))

    # -- values --------------------------------------------------------------------
    def _evaluate(self, which, x):
        x = np.asarray(x, dtype=np.float64)
        flat = np.ascontiguousarray(x).reshape(-1)
        out = np.empty_like(flat)
        _potentials.evaluate(self.core_spec, which, flat, out)
        return out.reshape(x.shape)[()]

    def potential(self, lam):
        """Dual potential phi(lam) = -log E exp(-lam gamma).

        Parameters
        ----------
        lam : array-like
            Multipliers, in 1 / margin units.

        Returns
        -------
        ndarray or float
            Of the shape of `lam`; -inf outside the domain.
        """
        lam = np.asarray(lam, dtype=np.float64)
        g = self._evaluate(_VALUE, lam / self.rate)
        # outside the domain level * lam may be infinite too, and inf - inf is NaN
        return self.level * np.where(np.isneginf(g), 0.0, lam) + g

    def mean(self, lam):
        """Mean margin under the tilted prior, phi'(lam).

        Parameters
        ----------
        lam : array-like
            Multipliers inside the domain.

        Returns
        -------
        ndarray or float
            In margin units, of the shape of `lam`.
        """
        lam = np.asarray(lam, dtype=np.float64)
        return self.level + self._evaluate(_SLOPE, lam / self.rate) / self.rate

    def curvature(self, lam):
        """Variance of the margin under the tilted prior, -phi''(lam).

        Parameters
        ----------
        lam : array-like
            Multipliers inside the domain.

        Returns
        -------
        ndarray or float
            At least zero, in squared margin units, of the shape of `lam`.
        """
        lam = np.asarray(lam, dtype=np.float64)
        return self._evaluate(_CURVATURE, lam / self.rate) / self.rate**2

    def loss(self, m):
        """Loss ell(m) = sup over lam of phi(lam) - lam m.

        Parameters
        ----------
        m : array-like
            Signed margins ``y f(x)``.

        Returns
        -------
        ndarray or float
            Convex in m, decreasing and at least zero; of the shape of `m`.
        """
        return self._evaluate(_LOSS, self._shortfall(m))

    def loss_slope(self, m):
        """Derivative ell'(m) of the loss, minus the multiplier that belongs to m.

        Parameters
        ----------
        m : array-like
            Signed margins.

        Returns
        -------
        ndarray or float
            At most zero, of the shape of `m`.
        """
        return -self.rate * self._evaluate(_ARGMAX, self._shortfall(m))

    def fenchel_young(self, lam, m):
        """Share of a row in the duality gap, ell(m) + lam m - phi(lam).

        Parameters
        ----------
        lam : array-like
            Multipliers.
        m : array-like
            Signed margins; broadcast against `lam`.

        Returns
        -------
        ndarray or float
            At least zero, and zero exactly when ``lam = -ell'(m)``.
        """
        lam, x = np.broadcast_arrays(
            np.asarray(lam, dtype=np.float64), self._shortfall(m)
        )
        u = np.ascontiguousarray(lam / self.rate).reshape(-1)
        out = np.empty_like(u)
        _potentials.evaluate_fenchel_young(
            self.core_spec, u, np.ascontiguousarray(x).reshape(-1), out
        )
        return out.reshape(x.shape)[()]

    def _shortfall(self, m):
        return self.rate * (self.level - np.asarray(m, dtype=np.float64))


class ExponentialMargin(MarginPrior):
    """One-sided exponential prior, ``level - gamma ~ Exp(rate)``: a smooth hinge.

    ``phi(lam) = level lam + log(1 - lam / rate)`` on ``[0, rate)``; the loss is
    ``psi(x) = x - 1 - log x`` of the scaled shortfall ``x = rate (level - m)`` where
    ``x > 1`` and zero elsewhere (JMJ 1999, eq. 9 and 15a).

    Parameters
    ----------
    rate : float, default=10.0
        The papers' c, > 0, in 1 / margin units.
    level : float, default=1.0
        The papers' l, in margin units.

    Examples
    --------
    >>> from maxent.discrimination import ExponentialMargin
    >>> prior = ExponentialMargin(rate=5.0)
    >>> round(float(prior.potential(4.0)), 4)
    2.3906
    >>> prior.prior_mean
    0.8
    """

    name = "exponential"
    _kind = 0

    def __init__(self, rate=10.0, level=1.0):
        super().__init__(rate, level)


class ErlangMargin(MarginPrior):
    """Erlang prior, ``level - gamma ~ Gamma(shape, rate)``.

    ``phi(lam) = level lam + shape log(1 - lam / rate)``. Shape 2 is what JMJ (1999)
    print as the Laplace potential (15b).

    Parameters
    ----------
    shape : float, default=2
        Shape of the gamma distribution, > 0.
    rate, level : float
        As for :class:`ExponentialMargin`.

    Examples
    --------
    >>> from maxent.discrimination import ErlangMargin
    >>> ErlangMargin(shape=2, rate=10.0).prior_mean
    0.8
    """

    name = "erlang"
    _kind = 1

    def __init__(self, shape=2, rate=10.0, level=1.0):
        self.shape = v.check_positive("shape", shape)
        super().__init__(rate, level)

    @property
    def _shape(self):
        return self.shape

    def parameters(self):
        return {"shape": self.shape, **super().parameters()}


class LaplaceMargin(MarginPrior):
    """Two-sided exponential prior around the level: a one-sided pseudo-Huber loss.

    ``phi(lam) = level lam + log(1 - (lam / rate)**2)`` on ``[0, rate)``; the
    potential printed as (15b) in JMJ (1999) is that of :class:`ErlangMargin`.

    Parameters
    ----------
    rate, level : float
        As for :class:`ExponentialMargin`.

    Examples
    --------
    >>> from maxent.discrimination import LaplaceMargin
    >>> round(float(LaplaceMargin(rate=5.0).potential(4.0)), 4)
    2.9783
    """

    name = "laplace"
    _kind = 2

    def __init__(self, rate=10.0, level=1.0):
        super().__init__(rate, level)


class GaussianMargin(MarginPrior):
    """Gaussian prior N(level, 1 / rate**2): the squared hinge.

    ``phi(lam) = level lam - lam**2 / (2 rate**2)`` on ``[0, inf)``; (15c) in JMJ
    (1999) lacks the factor 1/2.

    Parameters
    ----------
    rate, level : float
        As for :class:`ExponentialMargin`.

    Examples
    --------
    >>> from maxent.discrimination import GaussianMargin
    >>> GaussianMargin(rate=2.0).loss([-1.0, 0.0, 1.0])
    array([8., 2., 0.])
    """

    name = "gaussian"
    _kind = 3
    _upper = math.inf

    def __init__(self, rate=10.0, level=1.0):
        super().__init__(rate, level)

    def unit_weight(self, C):
        # the loss becomes C d**2 / 2
        return C / self.rate**2


class LogisticMargin(MarginPrior):
    """Prior whose loss is logistic, ``log(1 + exp(rate (level - m)))``.

    ``phi(lam) = level lam + H(lam / rate)`` with the binary entropy H. With level 0
    the machine is kernel logistic regression, and ``predict_proba`` is defined.

    Parameters
    ----------
    rate : float, default=1.0
        How steep the loss is, > 0, in 1 / margin units.
    level : float, default=0.0
        The margin at which the loss is log 2.

    Examples
    --------
    >>> from maxent.discrimination import LogisticMargin
    >>> round(float(LogisticMargin().loss(0.0)), 4)
    0.6931
    """

    name = "logistic"
    _kind = 4

    def __init__(self, rate=1.0, level=0.0):
        super().__init__(rate, level)


class FixedMargin(MarginPrior):
    """The margin is exactly the level: hard margins, no loss allowed.

    ``phi(lam) = level lam`` on ``[0, inf)``. On data that cannot be separated the
    dual is unbounded, which solvers report as an error.

    Parameters
    ----------
    level : float, default=1.0
        The margin, > 0.

    Examples
    --------
    >>> from maxent.discrimination import FixedMargin
    >>> FixedMargin().loss([0.5, 1.0])
    array([inf,  0.])
    """

    name = "fixed"
    _kind = 5
    _upper = math.inf

    def __init__(self, level=1.0):
        super().__init__(1.0, level)

    def unit_weight(self, C):
        # hard margins have no trade-off
        return 1.0

    def parameters(self):
        return {"level": self.level}


class HingeMargin(MarginPrior):
    """The classical support vector machine as a member, for comparison.

    ``phi(lam) = level lam`` on ``[0, weight]``; loss ``weight max(level - m, 0)``.
    Not a prior over margins: the limit of :class:`ExponentialMargin` as its
    sharpness grows.

    Parameters
    ----------
    level : float, default=1.0
        The margin below which the loss is linear.

    Examples
    --------
    >>> from maxent.discrimination import HingeMargin
    >>> HingeMargin().loss([-1.0, 0.5, 2.0])
    array([2. , 0.5, 0. ])
    """

    name = "hinge"
    _kind = 6
    _closed = True

    def __init__(self, level=1.0):
        super().__init__(1.0, level)

    def unit_weight(self, C):
        return C

    def parameters(self):
        return {"level": self.level}


class UniformExponentialMargin(MarginPrior):
    """Tolerance prior of MED regression: flat on a tube, exponential beyond it.

    The tolerance ``tau = level - gamma`` is uniform on ``[0, width]`` with an
    exponential tail of the given rate above (Jebara & Jaakkola 2000). The published
    potential lacks the constant ``log(width + 1 / rate)``.

    Parameters
    ----------
    width : float, default=0.1
        Half width of the flat part, > 0, in margin (target) units.
    rate : float, default=10.0
        Rate of the tail, > 0, in 1 / margin units.
    level : float, default=0.0
        The level from which the tolerance is counted downwards.

    Examples
    --------
    >>> from maxent.discrimination import UniformExponentialMargin
    >>> round(UniformExponentialMargin(width=0.1, rate=10.0).prior_mean, 12)
    -0.125
    """

    name = "uniform_exponential"
    _kind = 7

    def __init__(self, width=0.1, rate=10.0, level=0.0):
        self.width = v.check_positive("width", width)
        super().__init__(rate, level)

    @property
    def _shape(self):
        return self.width * self.rate

    def parameters(self):
        return {"width": self.width, **super().parameters()}


class CustomMargin(MarginPrior):
    """A margin prior of your own, given as Numba-compiled functions.

    Parameters
    ----------
    potential, mean, curvature : callable float -> float
        ``phi(lam)``, ``phi'(lam)`` and ``-phi''(lam)`` for ``0 <= lam < upper``.
        Plain Python functions or functions compiled by ``numba.njit``; they are
        compiled to C callbacks here. ``phi`` must be concave with ``phi(0) = 0``.
    upper : float, default=inf
        Supremum of the multipliers.

    Notes
    -----
    The conjugate loss is found by Newton's method on ``phi'(lam) = m``. The
    functions are checked on a grid for concavity and for derivatives that belong
    together.

    Examples
    --------
    >>> import math
    >>> from maxent.discrimination import CustomMargin, ExponentialMargin
    >>> mine = CustomMargin(
    ...     lambda lam: lam + math.log1p(-lam / 5.0),
    ...     lambda lam: 1.0 - 1.0 / (5.0 - lam),
    ...     lambda lam: 1.0 / (5.0 - lam) ** 2,
    ...     upper=5.0,
    ... )
    >>> bool(abs(mine.loss(0.2) - ExponentialMargin(5.0).loss(0.2)) < 1e-12)
    True
    """

    name = "custom"
    _kind = 8

    def __init__(self, potential, mean, curvature, upper=math.inf):
        super().__init__(1.0, 0.0)
        if not (_is_real(upper) and upper > 0):
            raise ValueError(f"upper={upper!r} must be > 0 (inf is allowed).")
        self._upper = float(upper)
        self._functions = tuple(
            _compile_scalar(f, name)
            for f, name in (
                (potential, "potential"),
                (mean, "mean"),
                (curvature, "curvature"),
            )
        )
        self._check()
        # does the multiplier reach its bound, as that of the hinge does?
        if math.isfinite(self._upper):
            end = np.array([self._upper])
            self._closed = bool(
                np.isfinite(self.potential(end)[0]) and np.isfinite(self.mean(end)[0])
            )

    @property
    def core_spec(self):
        """Tuple understood by the compiled kernels."""
        return (self._kind, 1.0, self._upper, *(f.address for f in self._functions))

    def unit_weight(self, C):
        # multipliers stay below C
        return C / self._upper if math.isfinite(self._upper) else C

    def parameters(self):
        return {"functions": self._functions, "upper": self._upper}

    def with_level(self, level):
        raise ValueError("a CustomMargin has its level inside its functions.")

    def get_spec(self):
        raise ValueError(
            "a CustomMargin holds compiled functions, which a model file cannot "
            "carry; use one of the named margin priors to save a model."
        )

    def _check(self):
        top = self._upper if math.isfinite(self._upper) else 10.0
        lam = top * np.array([0.0, 0.05, 0.2, 0.4, 0.6, 0.8, 0.95])
        phi, slope, curv = self.potential(lam), self.mean(lam), self.curvature(lam)
        if not (np.isfinite(phi).all() and np.isfinite(slope[1:]).all()):
            raise ValueError(
                "potential and mean must be finite inside the domain; found "
                f"phi={phi} and phi'={slope} at lam={lam}."
            )
        if abs(phi[0]) > 1e-12:
            raise ValueError(f"potential(0)={phi[0]!r} must be 0.")
        if (curv[1:] < 0).any():
            raise ValueError(
                f"curvature must be -phi'' >= 0; found {curv.min()!r}. Did you return "
                "phi'' instead?"
            )
        h = 1e-5 * top
        mid = lam[1:-1]
        for name, claimed, found in (
            ("mean", slope[1:-1], (self.potential(mid + h) - self.potential(mid - h))),
            ("curvature", curv[1:-1], -(self.mean(mid + h) - self.mean(mid - h))),
        ):
            found = found / (2 * h)
            bad = np.abs(claimed - found) > 1e-4 * (1 + np.abs(found))
            if bad.any():
                k = int(np.argmax(bad))
                raise ValueError(
                    f"{name}({mid[k]:g}) returned {claimed[k]:g} but differences of "
                    f"the function below it give {found[k]:g}; check its formula."
                )


def _compile_scalar(function, name):
    if not callable(function):
        raise TypeError(f"{name} must be a function of one float; got {function!r}.")
    import numba

    plain = getattr(function, "py_func", function)
    # a pole at the end of the domain is an infinity, not an exception
    return numba.cfunc("float64(float64)", nopython=True, error_model="numpy")(plain)


MARGINS = {
    cls.name: cls
    for cls in (
        ExponentialMargin,
        ErlangMargin,
        LaplaceMargin,
        GaussianMargin,
        LogisticMargin,
        FixedMargin,
        HingeMargin,
        UniformExponentialMargin,
    )
}


def margin_from_spec(spec):
    """Margin prior from the dict that ``get_spec`` returned.

    Parameters
    ----------
    spec : dict
        The key "name" and constructor arguments.

    Returns
    -------
    MarginPrior
        An equal prior.

    Raises
    ------
    ValueError
        If the name is not known.

    Examples
    --------
    >>> from maxent.discrimination import LaplaceMargin, margin_from_spec
    >>> margin_from_spec(LaplaceMargin(rate=5.0).get_spec())
    LaplaceMargin(rate=5.0, level=1.0)
    """
    try:
        cls = MARGINS[spec["name"]]
    except (KeyError, TypeError):
        raise ValueError(
            f"{spec!r} does not describe a margin prior; known names: "
            f"{sorted(MARGINS)}."
        ) from None
    return cls.from_spec(spec)


def classification_margin(margin, sharpness):
    """Prior meant by an estimator's `margin` and `sharpness`; checked.

    A prior whose mean is not positive asks for nothing: zero multipliers satisfy it.
    """
    if isinstance(margin, MarginPrior):
        prior = margin
    elif margin in ("exponential", "erlang", "laplace"):
        if not (_is_real(sharpness) and 1 < sharpness < math.inf):
            raise ValueError(
                f"sharpness={sharpness!r} must be a finite number > 1: with "
                "sharpness <= 1 the margin prior asks for nothing and every "
                "multiplier is zero."
            )
        prior = MARGINS[margin](rate=sharpness, level=1.0)
    elif margin in ("gaussian", "logistic"):
        prior = MARGINS[margin](rate=1.0, level=1.0 if margin == "gaussian" else 0.0)
    elif margin in ("fixed", "hinge"):
        prior = MARGINS[margin]()
    else:
        raise ValueError(
            f"margin={margin!r} is not known; use 'exponential', 'erlang', 'laplace', "
            "'gaussian', 'logistic', 'fixed', 'hinge' or a MarginPrior object."
        )
    check_asks_for_something(prior)
    return prior


def check_asks_for_something(prior):
    """Refuse a prior whose mean margin is not positive."""
    if not prior.prior_mean > 0:
        raise ValueError(
            f"{prior!r} has mean margin {prior.prior_mean:g} <= 0: it asks for nothing "
            "and every multiplier would be zero. Raise its level or its rate "
            "(the exponential prior needs rate * level > 1)."
        )


def regression_margin(margin, sharpness, epsilon):
    """Prior meant by a regressor's `margin`, `sharpness` and tube `epsilon`."""
    if isinstance(margin, MarginPrior):
        if margin.prior_mean > 0:
            raise ValueError(
                f"{margin!r} has mean margin {margin.prior_mean:g} > 0: a regression "
                "tube needs level = -epsilon <= 0."
            )
        return margin
    if margin not in (
        "exponential",
        "laplace",
        "gaussian",
        "uniform_exponential",
        "erlang",
        "hinge",
    ):
        raise ValueError(
            f"margin={margin!r} is not known for regression; use 'exponential', "
            "'erlang', 'laplace', 'gaussian', 'uniform_exponential', 'hinge' or a "
            "MarginPrior object."
        )
    if margin == "hinge":
        return HingeMargin(level=-epsilon)
    if margin == "gaussian":
        return GaussianMargin(rate=1.0, level=-epsilon)
    sharpness = v.check_positive("sharpness", sharpness)
    if margin == "uniform_exponential":
        if epsilon == 0:
            return ExponentialMargin(rate=sharpness, level=0.0)
        return UniformExponentialMargin(width=epsilon, rate=sharpness, level=0.0)
    return MARGINS[margin](rate=sharpness, level=-epsilon)
