"""Units, origins, order and weights: other numbers, which say the same."""

import numpy as np
import pytest
from invariances.data import each
from invariances.transformations.table import EPS, add, width


def in_units(data, scale):
    """Columns times numbers; of a matrix of second moments, rows too."""
    scale = scale * np.ones(width(data))
    if data.matrices:
        both = np.multiply.outer(scale, scale)
        volume = (len(scale) + 1) * np.log(scale).sum()
        return data.each(lambda x: x * both).replace(volume=volume)

    def volume(x):
        observed = ~np.isnan(x.reshape(-1, len(scale)))
        return observed @ np.log(scale)

    volumes = each(volume, data.query)
    if isinstance(volumes, list):
        volumes = np.array([rows.sum() for rows in volumes])
    return data.each(lambda x: x * (scale if x.ndim > 1 else scale[0])).replace(
        volume=volumes
    )


def each_in_its_unit(data, rng):
    d = width(data)
    return in_units(data, 10.0 ** rng.permutation(np.linspace(-8, 8, d)))


for unit in (1e-8, 1e-3, 1e8):
    add(f"unit {unit:g}", "unit", lambda d, r, u=unit: in_units(d, u), rounding=EPS)
add("own unit of each column", "units", each_in_its_unit, rounding=EPS)
for origin in (1e6, 1e8):
    add(
        f"origin {origin:g}",
        "origin",
        lambda d, r, o=origin: moved(d, o),
        rounding=EPS * origin / 16.0,
    )


def moved(data, origin):
    level = {"level": lambda f: np.asarray(f) - origin}
    return data.each(lambda x: x + origin).replace(restore={**data.restore, **level})


def shifted_targets(data, rng):
    return data.replace(
        y=data.y + 1e6, restore={**data.restore, "targets": lambda f: f - 1e6}
    )


add("origin 1e6 of targets", "targets", shifted_targets, rounding=EPS * 1e6 / 16.0)


# -- rows and columns ------------------------------------------------------------------
def other_order(data, rng):
    order = rng.permutation(len(data.X))
    back = np.argsort(order)
    changed = data.rows(order)
    return changed.replace(restore={**data.restore, "rows": lambda a: a[back]})


def inner_order(data, rng):
    return data.each(lambda x: x[np.random.default_rng(5).permutation(len(x))])


def other_columns(data, rng):
    order = np.roll(np.arange(width(data)), 1)
    back = np.argsort(order)
    restore = {
        "columns": lambda a: np.asarray(a)[..., back],
        "pairs": lambda a: a[np.ix_(back, back)],
    }
    return data.each(lambda x: x[..., order]).replace(
        restore={**data.restore, **restore}
    )


def weighted(data):
    """Weights 0 to 3; what has weight zero is like nothing else."""
    n = len(data.X)
    weight = 1.0 + np.arange(n) % 3
    weight[n // 2 : n // 2 + 2] = 0.0
    return data.replace(weight=weight)


def copies(data, rng):
    n = len(data.X)
    index = rng.permutation(np.repeat(np.arange(n), data.weight.astype(int)))
    return data.replace(weight=np.ones(n)).rows(index).replace(weight=None)


def doubled(data):
    """All rows, and every third of them three times more."""
    index = np.r_[np.arange(len(data.X)), np.repeat(np.arange(0, len(data.X), 3), 3)]
    return data.rows(index)


def merged(data, rng):
    """Each different row once, with the number of its copies."""
    n = len(data.X) - 3 * len(range(0, _without_copies(len(data.X)), 3))
    weight = np.where(np.arange(n) % 3 == 0, 4.0, 1.0)
    return data.rows(np.arange(n)).replace(weight=weight)


def _without_copies(m):
    """n such that n rows and three copies of every third are m."""
    return next(n for n in range(m + 1) if n + 3 * len(range(0, n, 3)) == m)


add("order of rows", "rows", other_order, rounding=EPS)
add("order within entries", "entries", inner_order, rounding=EPS)
add("order of columns", "columns", other_columns, rounding=EPS)
add("copies for weights", "weights", copies, rounding=EPS, base=weighted)
add("copies merged", "weights", merged, rounding=EPS, base=doubled)


def of_weights(form):
    return lambda data, rng: data.replace(weight=form(data.weight))


def series_of(values):
    """With an index of its own."""
    pd = pytest.importorskip("pandas")
    return pd.Series(values, index=np.arange(len(values))[::-1] + 3)


for name, form in {
    "int64": lambda w: w.astype(np.int64),
    "float32": lambda w: w.astype(np.float32),
    "in a list": lambda w: w.tolist(),
    "in a series": series_of,
}.items():
    add(f"weights {name}", "weighing", of_weights(form), base=weighted)
