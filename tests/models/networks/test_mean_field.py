"""Mean field over factors: monotone, below log Z, the same as coupled chains."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from models.factor_cases import random_field
from oracles import factors as brute

from maxent.models import MarkovRandomField
from maxent.models.chains._coupled_chains import CoupledChains, total_means
from maxent.models.networks._elimination import MAX_TABLE
from maxent.models.networks._mean_field import MeanField, numbered_clusters

SIZES = {"a": 2, "b": 3, "c": 2, "d": 2, "e": 3}
CLUSTERS = {
    "alone": None,
    "pairs": [["a", "c"], ["e", "b"]],
    "one of four": [["b", "c", "d", "e"]],
}


def mean_field(model, clusters, shape=(3, 1), rng=None):
    scopes, tables = model._sorted
    places = {name: [u] for u, name in enumerate(model.nodes)}
    own = numbered_clusters(clusters, places)
    tables = [t[..., None, None] for t in tables]
    sizes = tuple(model.n_categories.values())
    field = MeanField(scopes, sizes, tables, own, shape, MAX_TABLE)
    field.randomize(rng)
    return field


@pytest.mark.parametrize("clusters", CLUSTERS.values(), ids=CLUSTERS)
@settings(max_examples=10)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.3, 3.0]))
def test_the_bound_rises_with_every_update(clusters, number, scale):
    rng = np.random.default_rng(number)
    model = random_field(rng, SIZES, scale=scale)
    exact = brute.log_partition(model.log_factors)
    field = mean_field(model, clusters, rng=rng)
    last = field.bound()
    slack = 1e-12 * (1 + abs(exact) + np.abs(last))
    for _ in range(6):
        for c in range(len(field.clusters)):
            field.update(c)
            new = field.bound()
            assert (new >= last - slack).all()
            assert (new <= exact + slack).all()
            last = new


def test_the_start_is_the_bound_of_independent_variables(rng):
    model = random_field(rng, {"a": 2, "b": 3, "c": 2})
    field = mean_field(model, [["a", "b"]], (1, 1), rng)
    q = {}
    for c in range(len(field.clusters)):
        for f, scope in field.inner[c].items():
            for i, u in enumerate(scope):
                axes = tuple(k for k in range(len(scope)) if k != i)
                q[u] = field.beliefs[c][f][..., 0, 0].sum(axis=axes)
    expected = -sum((p * np.log(p)).sum() for p in q.values())
    for state in brute.states(model.n_categories):
        p = np.prod([q[u][code] for u, code in enumerate(state.values())])
        expected += p * brute.log_weight(model.log_factors, state)
    assert field.bound()[0, 0] == pytest.approx(expected, rel=1e-12)


def test_chains_kept_whole_are_the_coupled_chains_of_factorial_models(rng):
    """The same updates of the same bound, by forward-backward and by elimination."""
    S, d, T = (2, 3, 2), 2, 4
    starts = [rng.dirichlet(np.ones(s)) ** 0.7 for s in S]
    steps = [rng.dirichlet(np.ones(s), size=s) ** 0.7 for s in S]
    means = [rng.normal(size=(s, d)) for s in S]
    A = rng.normal(size=(d, d))
    precision = A @ A.T + np.eye(d)
    r = total_means(means)
    energy = -0.5 * np.einsum("id,de,ie->i", r, precision, r).reshape(S)

    variables = np.arange(len(S) * T).reshape(len(S), T)
    scopes = [tuple(int(u) for u in variables[:, t]) for t in range(T)]
    tables = [energy] * T
    for c in range(len(S)):
        scopes += [(int(variables[c, 0]),), *pairwise(variables[c].tolist())]
        tables += [np.log(starts[c]), *[np.log(steps[c])] * (T - 1)]
    tables = [t[..., None, None] for t in tables]
    sizes = np.repeat(S, T).tolist()
    clusters = [tuple(int(u) for u in row) for row in variables]
    field = MeanField(scopes, sizes, tables, clusters, (1, 1), MAX_TABLE)
    field.randomize(rng)
    beliefs = [
        np.stack([field.beliefs[c][t][:, 0, 0] for t in range(T)]) for c in range(3)
    ]
    chains = CoupledChains(
        starts, steps, means, precision, np.zeros((T, d)), np.array([0, T]), beliefs
    )
    for _ in range(3):
        for c in range(3):
            field.update(c)
            chains.update(c)
            for t in range(T):
                np.testing.assert_allclose(
                    field.beliefs[c][t][:, 0, 0], chains.beliefs[c][t], atol=1e-12
                )
        assert field.bound()[0, 0] == pytest.approx(chains.bound(), rel=1e-12)
    assert field.settle()[0, 0] == pytest.approx(chains.settle(), rel=1e-9)


def test_forbidden_states_leave_a_bound(rng):
    """Two nodes that must be equal: the best independent ones are at one state."""
    equal = np.array([[0.0, -np.inf], [-np.inf, 1.0]])
    field = MarkovRandomField([(("a", "b"), equal)])
    bound = field.log_partition(method="meanfield", random_state=rng, n_init=8)
    assert bound == pytest.approx(1.0, abs=1e-12)
    never = MarkovRandomField([("a", [0.0, -np.inf]), ("a", [-np.inf, 0.0])])
    assert never.log_partition(method="meanfield") == -np.inf
