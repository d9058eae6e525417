"""Newton steps on working sets of constraints, against the interior point."""

from dataclasses import replace

import numpy as np
import pytest

from maxent import MEDBayesNetClassifier, MEDGaussianClassifier
from maxent._optimize import block_sum
from maxent._optimize import constraint_rounds as rounds
from maxent.discrimination.duals import block_dual

MARGINS = pytest.mark.parametrize(
    "margin", ["exponential", "hinge", "laplace", "erlang"]
)


@pytest.fixture
def small(monkeypatch):
    """Sizes at which small problems take several rounds."""
    monkeypatch.setattr(rounds, "_FIRST", 40)
    monkeypatch.setattr(rounds, "_JOIN", 15)
    monkeypatch.setattr(rounds, "_SMALLEST", 0)


def groups(rng, k=6, rows=15, d=3):
    """Classes of normal rows about centres, some far and some near."""
    y = np.repeat(np.arange(k), rows)
    return 2.0 * rng.normal(size=(k, d))[y] + rng.normal(size=(k * rows, d)), y


def both(model, X, y, monkeypatch, **options):
    """The same fit by rounds, and by the interior point."""
    found = model.set_params(**options).fit(X, y)
    with monkeypatch.context() as patch:
        patch.setattr(block_dual, "few_can_matter", lambda R: False)
        other = type(model)(**model.get_params()).fit(X, y)
    return found, other


@MARGINS
@pytest.mark.parametrize("C", [0.3, 10.0])
def test_rounds_find_the_optimum_of_all_constraints(margin, C, rng, small, monkeypatch):
    X, y = groups(rng)
    found, other = both(
        MEDGaussianClassifier(margin=margin, C=C), X, y, monkeypatch, tol=1e-9
    )
    assert found.converged_ and other.converged_
    slack = 2e-9 * (1 + other.objective_)
    assert abs(found.objective_ - other.objective_) <= slack
    # predictions may differ: biases of classes that no row is close to are free


@MARGINS
def test_tables_of_many_classes(margin, rng, small, monkeypatch):
    X, y = groups(rng, k=5, rows=20, d=6)
    X = np.digitize(X, [-1.0, 1.0])
    model = MEDBayesNetClassifier(margin=margin, C=3.0)
    found, other = both(model, X, y, monkeypatch, tol=1e-9)
    assert found.converged_ and other.converged_
    assert found.objective_ == pytest.approx(other.objective_, rel=2e-9, abs=2e-9)


def problem(rng, monkeypatch):
    """Rows, R and E of a fit to classes that overlap little."""
    seen = []

    def keep(rows, R, E, **kwargs):
        seen.append((rows, R, E))
        return rounds.constraint_rounds(rows, R, E, **kwargs)

    monkeypatch.setattr(block_dual, "constraint_rounds", keep)
    X, y = groups(rng, rows=20, d=5)
    MEDGaussianClassifier(C=10.0, tol=1e-9).fit(X, y)
    return seen[0]


def test_every_step_is_certified_by_the_whole_problem(rng, small, monkeypatch):
    rows, R, E = problem(rng, monkeypatch)
    result = rounds.constraint_rounds(rows, R, E, tol=1e-9, max_iter=200)
    assert result.converged
    steps, objectives, gaps = map(np.array, zip(*result.history, strict=True))
    assert (np.diff(steps) >= 0).all() and steps[-1] == result.n_iter
    scale = 1 + np.abs(objectives).max()
    assert (np.diff(objectives) >= -1e-12 * scale).all()
    # every gap is a proof: no later objective is above objective and gap
    assert (objectives[-1] <= objectives + gaps + 1e-9 * scale).all()
    value, margins = R.value_and_margins(result.lam)
    d = rows.q - margins - E @ result.bias
    assert rows.value(result.lam) - value == pytest.approx(result.objective, rel=1e-12)
    assert rows.gap(result.lam, d) == pytest.approx(result.gap, abs=1e-9 * scale)
    assert 0 < np.count_nonzero(result.lam) < R.n
    assert np.abs(E.T @ result.lam).max() <= 1e-9 * result.lam.sum()


def test_more_rows_than_a_factor_has_columns_go_to_the_interior_point(
    rng, small, monkeypatch
):
    monkeypatch.setattr(rounds, "_LARGEST", 10)
    X, y = groups(rng)
    y = np.where(rng.random(len(y)) < 0.3, rng.integers(0, 6, len(y)), y)
    found, other = both(MEDGaussianClassifier(), X, y, monkeypatch)
    assert found.converged_ and found.n_iter_ > other.n_iter_
    assert found.objective_ == pytest.approx(other.objective_, rel=2e-8)


def never(*args, **kwargs):
    raise AssertionError("called")


def test_rounds_go_on_where_no_factor_is_stored(rng, small, monkeypatch):
    """A step of the interior point would take products without end."""
    X, y = groups(rng)
    with monkeypatch.context() as patch:
        patch.setattr(block_dual, "few_can_matter", lambda R: False)
        other = MEDGaussianClassifier().fit(X, y)
    monkeypatch.setattr(block_sum, "_FACTOR_SIZE", 0)
    monkeypatch.setattr(rounds, "_LARGEST", 10)
    monkeypatch.setattr(block_dual, "_interior", never)
    found = MEDGaussianClassifier().fit(X, y)
    assert found.converged_
    assert found.objective_ == pytest.approx(other.objective_, rel=2e-8)


def test_best_biases_of_all_end_rounds_that_cannot_move(rng, small, monkeypatch):
    """Many biases leave a working set solved, and most violate other constraints."""
    rows, R, E = problem(rng, monkeypatch)
    whole = rounds.constraint_rounds(rows, R, E, tol=1e-9, max_iter=200)

    def solved(self, working, steps, max_iter):
        self.point = self._certified(whole.lam, whole.bias + 1e3)
        return replace(whole, n_iter=0)

    monkeypatch.setattr(rounds._Rounds, "_round", solved)
    again = rounds.constraint_rounds(rows, R, E, tol=1e-9, max_iter=9, init=whole.lam)
    assert again.converged and again.n_iter == 0


def test_constraints_join_until_none_is_left(rng, small, monkeypatch):
    monkeypatch.setattr(rounds, "_FIRST", 15)
    monkeypatch.setattr(rounds, "_JOIN", 1)
    found, other = both(MEDGaussianClassifier(), *groups(rng), monkeypatch)
    assert found.converged_
    assert found.objective_ == pytest.approx(other.objective_, rel=2e-8)


def test_a_callback_ends_the_rounds(rng, small, monkeypatch):
    rows, R, E = problem(rng, monkeypatch)
    calls = []

    def stop(*report):
        calls.append(report)
        return len(calls) == 3

    result = rounds.constraint_rounds(rows, R, E, tol=1e-9, max_iter=100, callback=stop)
    assert not result.converged and len(calls) == 3 and result.history == calls
    few = rounds.constraint_rounds(rows, R, E, tol=1e-9, max_iter=2)
    assert not few.converged and few.n_iter <= 2
    whole = rounds.constraint_rounds(rows, R, E, tol=1e-9, max_iter=200)
    again = rounds.constraint_rounds(rows, R, E, tol=1e-9, max_iter=100, init=whole.lam)
    assert again.converged and again.n_iter <= 1


def test_few_classes_do_without_rounds(rng, monkeypatch):
    monkeypatch.setattr(block_dual, "constraint_rounds", never)
    X, y = groups(rng, k=3)
    assert MEDGaussianClassifier().fit(X, y).converged_
