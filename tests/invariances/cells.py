"""One cell of the table: a subject, a transformation, and what has to come of it."""

from __future__ import annotations

import functools
import warnings
import zlib

import numpy as np
import pytest
from invariances.registry import Documented, Refused, expected, text_of
from invariances.subjects import SUBJECTS
from invariances.transformations import TRANSFORMATIONS
from refusals import NO_SIGNAL

# groups of transformations of one sort
SORTS = [
    words.split()
    for words in (
        "frames whole holes categories lists joined "
        "numbers reals naturals truths bits memory nested symbols",
        "weights weighing sparse dask jobs",
        "unit units origin",
        "rows columns entries",
        "labels two targets words letters",
    )
]
# Of fits to the same numbers: they take the same steps, but BLAS of some processors
# adds up rows in an order that depends on where they begin in memory.
SAME_NUMBERS = 1e-8


def applicable(subject):
    return [t for t in TRANSFORMATIONS if t.group in subject.groups]


def every():
    """All cells."""
    return [(s, t) for s in SUBJECTS for t in applicable(s)]


def few():
    """Some cells, the same in every run: one of each sort for every subject.

    Columns of data frames that are not those of the fit are always among them, and
    every transformation is with some subject.
    """
    cells = sorted(every(), key=lambda cell: _rank(*cell))
    picked = {}
    for subject, t in cells:
        sort = next((k for k, groups in enumerate(SORTS) if t.group in groups), None)
        place = subject.name, t.name if t.group == "names" else sort
        picked.setdefault(place, (subject, t))
    met = {(t.group, t.name) for _, t in picked.values()}
    for subject, t in cells:
        if (t.group, t.name) not in met:
            picked[subject.name, t.group, t.name] = subject, t
            met.add((t.group, t.name))
    names = {(s.name, t.group, t.name) for s, t in picked.values()}
    # in the order of subjects: neighbours share the fit before the transformation
    return [(s, t) for s, t in every() if (s.name, t.group, t.name) in names]


def _rank(*cell):
    return zlib.crc32(" ".join(part.name for part in cell).encode())


def generator(*words):
    return np.random.default_rng([zlib.crc32(str(word).encode()) for word in words])


def quietly(run):
    """Result of a call that warns of nothing but data without signal."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", NO_SIGNAL, UserWarning)
        return run()


def answers(subject, data, **options):
    fitted = quietly(lambda: subject.fit(data, **options))
    values = quietly(lambda: subject.answers(fitted, data.query))
    return {role: data.restored(role, value) for role, value in values.items()}


@functools.cache
def _problem(subject, base, seed, n):
    """Data before the transformation, and the answers to them."""
    data = base(subject.kind(generator(seed, subject.kind.__name__), n))
    return data, answers(subject, data)


def compare(subject, transformation, seed=0, n=40):
    """Largest difference between answers, in units of their size."""
    data, before = _problem(subject, transformation.base, seed, n)
    changed = transformation.change(data, generator(seed, transformation.name))
    after = answers(subject, changed, **transformation.options, **changed.options)
    return max(difference(after[role], before[role]) for role in before)


def difference(answer, wanted):
    answer, wanted = (np.asarray(a, dtype=float) for a in (answer, wanted))
    assert answer.shape == wanted.shape, (answer.shape, wanted.shape)
    size = 1.0 + np.max(np.abs(wanted), where=np.isfinite(wanted), initial=0.0)
    same = answer == wanted  # infinities too
    gaps = np.where(same, 0.0, np.abs(np.where(same, 0.0, answer - wanted)))
    return float(np.max(gaps / size, initial=0.0))


def check(subject, transformation, seed=0, n=40):
    """Assert what the registry says of a cell."""
    outcome = expected(subject, transformation)
    run = functools.partial(compare, subject, transformation, seed, n)
    if isinstance(outcome, Refused):
        with pytest.raises((ValueError, TypeError), match=outcome.match):
            run()
        return
    if isinstance(outcome, Documented):
        assert outcome.says in text_of(outcome.where), outcome
        try:
            gap = run()
        except (ValueError, UserWarning):  # of convergence too
            return
        same = gap <= subject.tolerance
        # small data of other draws may be alike by chance
        if outcome.always and seed == 0:
            assert not same, "equal, though documented otherwise"
        return
    limit = SAME_NUMBERS
    if transformation.rounding is not None:
        limit = subject.tolerance + outcome.slack * transformation.rounding
    gap = run()
    assert gap <= limit, f"answers differ by {gap:.2g}, and {limit:.2g} is allowed"
