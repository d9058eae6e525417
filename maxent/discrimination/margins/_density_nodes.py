"""Nodes and masses of a density of margins, for its dual potential.

The axis is the depth d = origin - gamma, so that the far left tail of the margins,
which decides how the potential ends, lies at large d. Panels of sixteen Gauss-Legendre
nodes are halved until S(lam) = E exp(lam d) agrees at multipliers over the domain; a
kink or a jump is thus enclosed by ever smaller panels.
"""

from __future__ import annotations

import math

import numpy as np

from maxent._support import validation as v

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_ALIKE = 1e-13  # share of the total by which a panel and its halves may differ
_LEVELS = 60  # halvings, after which a density is too rough
_DROP = 680.0  # log density below its peak, where doubles are still normal
_TAIL = 300.0  # and where its left tail is taken to begin
_REACH = 16  # doublings of the depth up to which an exponential tail has nodes
_REACH_OF_ENDS = 45  # the same where the end of the domain is attained
_CLOSE = 36  # halvings of the distance to a left end


def density_nodes(pdf, support, upper):
    """(depths, log masses, upper, top, origin, known_end) of a density.

    The masses are those of the density times exp(upper d) where `upper` is finite.
    `top` is the multiplier from where on the potential has to be continued.
    `known_end` is true if the origin is an end of the support.
    """
    axis = _Axis(pdf, *support)
    tail = _left_tail(axis, upper)
    depths, logs = _settled(axis, tail)
    keep = np.argsort(depths)
    return depths[keep], logs[keep], tail.upper, tail.top, axis.origin, axis.known_end


class _Axis:
    """The log density over depths, with a grid that shows where it lives."""

    def __init__(self, pdf, a, b):
        self.pdf, self.vectorised = pdf, True
        ends = [end for end in (a, b) if math.isfinite(end)]
        self.known_end = bool(ends)
        self.origin = ends[0] if ends else 0.0
        self.low, self.high = self.origin - b, self.origin - a
        self._look()

    def log_density(self, d):
        """Log density at depths of any shape, checked."""
        gamma = self.origin - d
        p = self._call(gamma)
        bad = ~(np.isfinite(p) & (p >= 0))
        if bad.any():
            k = np.unravel_index(int(np.argmax(bad)), p.shape)
            raise ValueError(
                f"pdf({gamma[k]:g}) returned {p[k]:g}; a density must be finite and at "
                "least zero inside its support."
            )
        with np.errstate(divide="ignore"):
            return np.log(p)

    def _call(self, gamma):
        if self.vectorised:
            try:
                with np.errstate(all="ignore"):
                    p = np.asarray(self.pdf(gamma))
                if p.shape in ((), gamma.shape) and p.dtype.kind != "c":
                    return np.broadcast_to(p.astype(np.float64), gamma.shape)
            except (TypeError, ValueError):
                pass  # of scalars: an error of its own comes again below
            self.vectorised = False
        each = [self._number(float(x)) for x in gamma.ravel()]
        return np.array(each).reshape(gamma.shape)

    def _number(self, x):
        p = self.pdf(x)
        if np.size(p) != 1 or np.iscomplexobj(p):
            raise ValueError(
                f"pdf({x:g}) returned {v.shown(p)}; one real number is expected."
            )
        return float(np.reshape(p, ()))

    def _look(self):
        """Grid, its log density, and the median and a scale of the mass."""
        steps = 10.0 ** np.linspace(-9.0, 9.0, 3600)
        steps = np.concatenate([-steps[::-1], [0.0], steps])
        grid = even = np.empty(0)
        if math.isfinite(self.low) and math.isfinite(self.high):
            even = np.linspace(self.low, self.high, 20_001)
        centre = 0.0
        for _ in range(3):
            grid = np.union1d(np.union1d(grid, even), centre + steps)
            if math.isfinite(self.high):
                grid = np.union1d(grid, self.high - steps[len(steps) // 2 + 1 :])
            grid = grid[(grid > self.low) & (grid < self.high)]
            logs = self.log_density(grid)
            peak = float(logs.max())
            if peak == -math.inf:
                raise ValueError(
                    "pdf is zero wherever it was looked at; give the support, and "
                    "margins in units in which the density is not narrower than 1e-3 "
                    "of its distance from zero."
                )
            centre = float(grid[int(np.argmax(logs))])
            seen = grid[logs > peak - _DROP]
            even = np.linspace(seen[0], seen[-1], 20_001)
        mass = np.exp(logs - peak)
        mass = np.append(0.0, np.cumsum(0.5 * (mass[1:] + mass[:-1]) * np.diff(grid)))
        self.mass, self.peak, self.grid, self.logs = mass[-1], peak, grid, logs
        quarter, self.centre, other = np.interp(
            np.array([0.25, 0.5, 0.75]) * mass[-1], mass, grid
        )
        self.scale = max(other - quarter, 1e-12 * abs(self.centre))
        # powers of the depth in the tail are counted from here
        self.tail_origin = 0.0 if self.known_end else self.centre
        if not self.scale > 1e-150:
            raise ValueError(
                "pdf has its mass in one point, for double precision; use FixedMargin, "
                "or give margins in smaller units."
            )


class _Tail:
    """The density at large depths: where the nodes end, and what is known beyond."""

    def __init__(self, end, upper, top, beyond=None, doublings=0):
        self.end, self.upper, self.top = end, upper, top
        self.beyond, self.doublings = beyond, doublings


def _left_tail(axis, upper):
    """The end of the domain, from the logarithm of the density far left."""
    seen = axis.grid[axis.logs > axis.peak - _DROP]
    end = float(seen[-1])
    if math.isfinite(axis.high) and end >= axis.grid[-1] - 1e-12 * abs(axis.high):
        if upper is not None and math.isfinite(upper):
            raise ValueError(
                f"upper={upper:g} with a support that ends at "
                f"{axis.origin - axis.high:g}: its potential is finite for all "
                "multipliers; leave upper out."
            )
        return _Tail(axis.high, math.inf, math.inf)
    if end > 1e-2 * axis.grid[-1]:
        if axis.logs[-1] == -math.inf:
            raise ValueError(
                f"pdf spreads over margins as far as {axis.origin - end:g}; give "
                "margins in larger units."
            )
        raise _heavy("left", "exponentially", "no multiplier has a finite potential")
    origin = axis.tail_origin
    span = end - origin
    start = float(axis.grid[axis.logs > axis.peak - _TAIL][-1])
    if not start < end:
        raise ValueError(
            f"pdf is zero below the margin {axis.origin - end:g}; end the support "
            "there."
        )
    x = start + (end - start) * 0.5 * (1.0 + np.cos(np.pi * (np.arange(64) + 0.5) / 64))
    y = axis.log_density(x)
    if not np.isfinite(y).all():
        raise ValueError(
            "pdf has a gap in its left tail; end the support where the gap begins."
        )
    if upper is None or math.isfinite(upper):
        rate, power, beyond, error = _fit_tail((x - origin) / span, y, upper, span)
        if upper is not None and error > 1e-3:
            raise ValueError(
                f"upper={upper:g} is not the rate at which pdf falls far left; leave "
                "it out to have the rate found."
            )
        if upper is not None or (error <= 1e-7 and rate * (end - start) > 100.0):
            attained = power <= -1.0 + 1e-6
            doublings = _REACH_OF_ENDS if attained else _REACH
            # the share of the domain that the last node does not decide
            left = 40.0 / (rate * span * 2.0**doublings)
            return _Tail(
                end,
                rate,
                math.inf if attained else rate * (1.0 - left),
                lambda d: rate * origin + beyond((d - origin) / span),
                doublings,
            )
    shallow, deep = (-np.diff(y[[-1, 32, 0]]) / np.diff(x[[-1, 32, 0]])).tolist()
    if not deep > 1.03 * shallow:
        raise ValueError(
            "the left tail of pdf falls like no exponential times a power, nor faster: "
            f"its rates at two depths are {shallow:.9g} and {deep:.9g}. Give its rate "
            "as upper, or end the support."
        )
    return _Tail(end, math.inf, _reach(axis, end, 2.0 * deep))


def _reach(axis, end, fall):
    """Largest multiplier at which the mass beyond the end does not count."""
    inside = axis.grid <= end
    d, logs = axis.grid[inside] - end, axis.logs[inside]
    low, high = 0.0, fall
    for _ in range(60):
        lam = 0.5 * (low + high)
        tilted = logs + lam * d
        low, high = (lam, high) if tilted.max() - tilted[-1] > 50.0 else (low, lam)
    return low


def _fit_tail(x, y, upper, span):
    """Log density A - rate d + k log d + .. over shares of the depth, in fewest terms.

    Returns the rate, k, the function without its linear term, and the largest error.
    """
    terms = [np.ones_like, np.log, lambda x: 1.0 / x, lambda x: x**-2.0]
    given = 0.0 if upper is None else upper * span
    for count in (1, 2, 3, 4):
        used = terms[:count] if upper is not None else [lambda x: x, *terms[:count]]
        columns = np.stack([f(x) for f in used], axis=1)
        found, *_ = np.linalg.lstsq(columns, y + given * x, rcond=None)
        error = float(np.abs(columns @ found - y - given * x).max())
        if error <= 1e-11:
            break
    slope = -given if upper is not None else float(found[0])
    rest = found if upper is not None else found[1:]

    def beyond(x):
        return sum(c * f(x) for c, f in zip(rest, terms, strict=False))

    rate = -slope / span if upper is None else upper
    return rate, float(rest[1]) if count > 1 else 0.0, beyond, error


def _heavy(side, how, why):
    return ValueError(
        f"the {side} tail of pdf is too heavy: it must fall {how}, or {why}. End the "
        "support, or give a density with a lighter tail."
    )


def _edges(axis, tail):
    """First panels: they double with the distance from the median, and near an end."""
    distances = axis.scale * 2.0 ** np.arange(-3.0, 64.0)
    left = axis.centre + distances
    right = axis.centre - distances[: _right_end(axis, distances) + 1]
    parts = [[axis.centre], left[left < tail.end], [tail.end]]
    if math.isfinite(axis.low):
        parts += [right[right > axis.low], [axis.low]]
    else:
        parts += [right]
    if tail.upper == tail.top == math.inf:
        near = tail.end - (tail.end - axis.centre) * 0.5 ** np.arange(1, _CLOSE + 1)
        parts += [near]
    if tail.doublings:
        span = tail.end - axis.tail_origin
        parts += [axis.tail_origin + span * 2.0 ** np.arange(1, tail.doublings + 1)]
    return np.unique(np.concatenate(parts))


def _right_end(axis, distances):
    """The distance from where on to the right neither mass nor variance is left."""
    if math.isfinite(axis.low):
        return len(distances) - 1
    logs = axis.log_density(axis.centre - distances)
    share = logs - axis.peak + 3.0 * np.log(distances / axis.scale)
    held = np.flatnonzero(share > -36.0)
    last = int(held[-1]) + 1 if held.size else 0
    if last >= len(distances) - 4:
        raise _heavy("right", "faster than gamma**-3", "mean and variance are infinite")
    far = axis.grid[axis.logs > axis.peak - 45.0][0]  # another bump
    return max(last, int(np.searchsorted(distances, axis.centre - far)) + 1)


def _multipliers(axis, tail):
    if tail.upper < math.inf:
        last = 4 + int(np.log2(tail.end / axis.scale + 1.0)) + tail.doublings
        return tail.upper * np.append(0.0, 1.0 - 0.5 ** np.arange(0.25, last, 0.75))
    if tail.top < math.inf:
        return tail.top * np.array([0, 0.01, 0.03, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 1.0])
    width = tail.end - axis.centre
    return np.append(0.0, 2.0 ** np.arange(-3.0, _CLOSE - 6.0)) / width


def _settled(axis, tail):
    """Depths and log masses of panels that agree with their halves."""
    pivot = tail.upper if tail.upper < math.inf else 0.0
    lam = _multipliers(axis, tail)

    def logs_at(d):
        inside = np.minimum(d, tail.end)
        logs = axis.log_density(inside)
        logs = logs + pivot * inside
        if tail.beyond is not None:
            far = d > tail.end
            logs = np.where(far, tail.beyond(np.where(far, d, tail.end)), logs)
        return logs

    def points(low, high):
        half = 0.5 * (high - low)[:, None]
        d = low[:, None] + half * (1.0 + _NODES)
        return d, logs_at(d) + np.log(half * _WEIGHTS)

    edges = _edges(axis, tail)
    low, high = edges[:-1], edges[1:]
    d, m = points(low, high)
    shift = _tilted(d, m, lam, pivot).max(axis=(0, 1))
    grid = axis.grid[axis.grid <= tail.end]
    crude = _tilted(grid, logs_at(grid), lam, pivot)
    shift = np.maximum(shift, crude.max(axis=0))

    def sums(d, m):
        """By panel (n, L + 1): S at every multiplier, and the variance at zero."""
        e = np.exp(_tilted(d, m, lam, pivot) - shift)
        square = ((d - axis.centre) / axis.scale) ** 2
        return np.concatenate([e, e[..., :1] * square[..., None]], axis=-1).sum(axis=-2)

    whole, done = sums(d, m), []
    total = whole.sum(axis=0)
    for _ in range(_LEVELS):
        middle = 0.5 * (low + high)
        low, high = np.stack([low, middle], 1), np.stack([middle, high], 1)
        halves_d, halves_m = points(low.ravel(), high.ravel())
        halves = sums(halves_d, halves_m)
        pairs = halves.reshape(len(d), 2, -1)
        total += (pairs.sum(axis=1) - whole).sum(axis=0)
        rough = (np.abs(pairs.sum(axis=1) - whole) > _ALIKE * total).any(axis=1)
        done.append((d[~rough], m[~rough]))
        if not rough.any():
            break
        again = np.repeat(rough, 2)
        low, high = low[rough].ravel(), high[rough].ravel()
        d, m, whole = halves_d[again], halves_m[again], halves[again]
        if rough.sum() > 2000:
            raise _rough(axis, d)
    else:
        raise _rough(axis, d)
    d = np.concatenate([part.ravel() for part, _ in done])
    m = np.concatenate([part.ravel() for _, part in done])
    share = np.exp(_tilted(d, m, lam, pivot) - shift)
    total = share.sum(axis=0)
    found = math.exp(shift[0] - axis.peak) * total[0]
    if not abs(found - axis.mass) <= 0.05 * axis.mass:
        raise ValueError(
            "pdf has parts so narrow that two rules disagree on its mass: "
            f"{found:g} and {axis.mass:g} times its peak. Give a smoother density or a "
            "shorter support."
        )
    keep = (share > 1e-19 * total).any(axis=1)
    return d[keep], m[keep]


def _tilted(d, m, lam, pivot):
    return m[..., None] + (lam - pivot) * d[..., None]


def _rough(axis, d):
    return ValueError(
        "the integrals of pdf do not settle near margin "
        f"{axis.origin - float(d.mean()):g}: it is too rough there, infinite, or "
        "computed with too few digits. Give a smoother density, or samples of it to "
        "from_samples."
    )
