"""Parameters that stay in fits: every model with one oracle, its own density."""

import functools

import numpy as np
import pytest
from models.state_space_cases import random_factorial, random_lds, random_switching
from refusals import refused
from scipy.special import xlogy

from maxent.families import Gaussian
from maxent.models import (
    BayesNet,
    CategoricalHMM,
    FactorialHMM,
    GaussianHMM,
    LinearDynamicalSystem,
    LinearGaussianNetwork,
    Mixture,
    SwitchingLDS,
)
from maxent.models._holding import check_fixed
from maxent.models.systems import _switching_em as em
from maxent.models.systems._lds_em import CovariancePrior

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*stopped with status:sklearn.exceptions.ConvergenceWarning"
)
TABLES = "start", "transition", "switching", "emission", "factors"
NET = [("h", 2), ("a", 1), ("b", 2), ("c", 1), ("d", 1), ("e", 1)]
ABOVE = {"a": ["h"], "b": ["h"], "c": ["h", "a"], "d": ["h"], "e": ["h"]}


def changed(model, **changes):
    return type(model)(**{**model.parameters(), **changes})


def network(rng):
    size = dict(NET)
    return LinearGaussianNetwork(
        NET,
        {
            (child, parent): rng.normal(size=(size[child], size[parent]))
            for child, own in ABOVE.items()
            for parent in own
        },
        {name: rng.normal(size=n) for name, n in NET},
        {n: np.diag(rng.uniform(0.5, 1.5, s)) + 0.2 for n, s in NET},
        list("abcde"),
    )


def bayes_net(rng):
    def rows(*shape):
        return rng.dirichlet(np.full(shape[-1], 2.0), shape[:-1])

    tables = [
        (("h",), rows(2)),
        (("h", "a"), rows(2, 3)),
        (("h", "b"), rows(2, 3)),
        (("h", "a", "c"), rows(2, 3, 3)),
    ]
    return BayesNet(tables, ["a", "b", "c"])


def gaussian_hmm(rng):
    chain = [0.3, 0.7], rng.dirichlet([2.0, 2.0], 2)
    return GaussianHMM(*chain, rng.normal(size=(2, 2)) + [[0], [2]], [np.eye(2)] * 2)


def letters(rng):
    chain = [0.3, 0.7], rng.dirichlet([2.0, 2.0], 2)
    return CategoricalHMM(*chain, rng.dirichlet([1.0] * 4, 2))


MAKERS = {
    "lds": functools.partial(random_lds, n=2, d=2),
    "switching": functools.partial(random_switching, K=2, n=1, d=2),
    "factorial": functools.partial(random_factorial, sizes=(2, 3), d=2),
    "network": network,
    "net": bayes_net,
    "gaussians": gaussian_hmm,
    "letters": letters,
}
FEW = {"lds": 7, "switching": 3, "factorial": 6, "gaussians": 8, "letters": 9}


def leaves(model):
    """Arrays by (parameter, place), and of nets by (node, None)."""
    if isinstance(model, BayesNet):
        return {(nodes[-1], None): table for nodes, table in model.factors}
    found = {}
    for name in model._holdable():
        if name == "emission":
            if not isinstance(model, GaussianHMM):
                found[name, None] = model.emission.prob
            continue
        value = getattr(model, name)
        several = value if isinstance(value, tuple) else [value]
        place = range(len(several)) if isinstance(value, tuple) else [None]
        found |= {(name, c): array for c, array in zip(place, several)}
    return found


def with_leaf(model, key, array):
    name, c = key
    if isinstance(model, BayesNet):
        factors = [(n, array if n[-1] == name else t) for n, t in model.factors]
        return BayesNet(factors, model.observed)
    if c is not None:
        own = list(getattr(model, name))
        own[c] = array
        array = own
    return changed(model, **{name: array})


def random_fixed(model, rng):
    """`fixed=` of random masks, and the masks of the leaves."""
    fixed = {}
    for name, shape in model._holdable().items():
        if rng.random() < 0.4 or (
            name == "emission" and isinstance(model, GaussianHMM)
        ):
            continue
        whole = name.endswith("cov") and isinstance(model, LinearDynamicalSystem)
        if whole:
            fixed[name] = bool(rng.random() < 0.4)
        elif isinstance(shape, list):
            fixed[name] = [rng.random(own) < 0.4 for own in shape]
        else:
            fixed[name] = np.asarray(rng.random(shape) < 0.4)
    masks = {}
    for (name, c), array in leaves(model).items():
        mask = np.asarray(
            fixed.get(name, False) if c is None else fixed.get(name, [False] * 9)[c]
        )
        if name == "covs":
            sizes = [size for _, size in model.order]
            mask = np.broadcast_to(mask, (len(sizes),))
            blocks = np.repeat(np.arange(len(sizes)), sizes)
            mask = np.repeat(mask, sizes)[:, None] & (blocks[:, None] == blocks)
        mask = mask.reshape(mask.shape + (1,) * (array.ndim - mask.ndim))
        masks[name, c] = np.broadcast_to(mask, array.shape)
    return fixed, masks


def directions(model, masks):
    """Changes of one leaf by which the model stays one, and what is held too."""
    for key, array in leaves(model).items():
        free = ~masks[key]
        systems = isinstance(model, (LinearDynamicalSystem, SwitchingLDS))
        is_table = key[0] in TABLES and not (systems and key[0] == "transition")
        if is_table or isinstance(model, BayesNet):
            for row in np.ndindex(array.shape[:-1]):
                first, *others = np.flatnonzero(free[row]).tolist() or [None]
                for j in others:
                    step = np.zeros(array.shape)
                    step[(*row, first)], step[(*row, j)] = -1.0, 1.0
                    yield key, step
            continue
        if key[0] == "coefficients":
            free = free & (array != 0)
        if key[0] == "covs":
            free = free & (array != 0)
        for at in np.argwhere(free):
            step = np.zeros(array.shape)
            step[tuple(at)] = 1.0
            if key[0].startswith("cov") or key[0].endswith("cov"):
                if at[-1] > at[-2]:
                    continue
                step[(*at[:-2], at[-1], at[-2])] = 1.0
            yield key, step


def sample(model, n, rng):
    name = next(k for k, make in MAKERS.items() if type(make(rng)) is type(model))
    return model.sample(n, FEW[name], rng) if name in FEW else model.sample(n, rng)


def options_of(model):
    """Options of a fit whose objective is all but the likelihood."""
    if isinstance(model, FactorialHMM):
        return {"smoothing": 0.0, "shrinkage": 1e-9, "ridge": 0.0}
    if isinstance(model, SwitchingLDS):
        return {"smoothing": 0.0, "prior": 1e-8, "stable": False}
    if isinstance(model, LinearDynamicalSystem):
        return {"prior": 1e-4, "stable": False}
    if isinstance(model, LinearGaussianNetwork):
        return structure(model)
    return {"smoothing": 0.0, **structure(model)}


def structure(model):
    """Arguments of a fit that say what nodes there are."""
    if isinstance(model, BayesNet):
        return {"parents": model.parents, "observed": model.observed}
    network = isinstance(model, LinearGaussianNetwork)
    return {"order": model.order, "parents": ABOVE} if network else {}


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("some", [False, True])
def test_the_count_is_the_rank_of_the_law(kind, some):
    """Derivatives of the log-densities of random data by all that is free.

    One random problem: ranks are those of almost all, but not always plain to see.
    """
    rng = np.random.default_rng(3)
    init = MAKERS[kind](rng)
    data = sample(init, 50, rng)
    fixed, masks = random_fixed(init, rng)
    if not some:
        fixed, masks = {}, {k: np.zeros_like(m) for k, m in masks.items()}
    own = {
        k: x
        for k, x in options_of(init).items()
        if k in ("order", "parents", "observed")
    }
    model = type(init).fit(data[:40], init=init, fixed=fixed, max_iter=1, **own)
    J = []
    for key, step in directions(model, masks):
        at = leaves(model)[key]
        ends = [with_leaf(model, key, at + h * step) for h in (1e-5, -1e-5)]
        J.append(np.subtract(*(one.log_likelihood(data) for one in ends)) / 2e-5)
    J = np.array(J)
    values = np.linalg.svd(J / np.linalg.norm(J, axis=1)[:, None], compute_uv=False)
    k = model.n_parameters
    assert len(values) == k or values[k] < 1e-6 < 1e-5 < values[k - 1]
    if some:
        assert k <= init.n_parameters
        again = type(model).from_spec(model.get_spec())
        assert again.n_parameters == k
    else:
        assert k == init.n_parameters


@pytest.mark.parametrize("kind", MAKERS)
def test_held_values_have_the_same_bits_and_the_rest_rises_to_a_maximum(kind, rng):
    init = MAKERS[kind](rng)
    data = sample(MAKERS[kind](rng), 40, rng)
    if kind in ("factorial", "network", "lds", "switching"):
        data[0][..., 0] = np.nan
    fixed, masks = random_fixed(init, rng)
    model = type(init).fit(
        data, init=init, fixed=fixed, tol=1e-10, max_iter=1000, **options_of(init)
    )
    for key, mask in masks.items():
        np.testing.assert_array_equal(leaves(model)[key][mask], leaves(init)[key][mask])
    if model.fit_result is None:  # complete data
        return
    trace = model.fit_result.objective_history
    assert (np.diff(trace) >= -1e-10 * (1.0 + np.abs(trace[1:]))).all()
    if kind == "switching":  # the next test has its M step
        return
    best = model.log_likelihood(data).sum()
    gain = best - init.log_likelihood(data).sum()
    for key, step in directions(model, masks):
        at = leaves(model)[key]
        if near_the_end(key[0], at, step):
            continue
        ends = [with_leaf(model, key, at + h * step) for h in (1e-4, -1e-4)]
        up, down = (one.log_likelihood(data).sum() for one in ends)
        slope, curvature = (up - down) / 2e-4, (up + down - 2 * best) / 1e-8
        # a step to the maximum along this line gains this many nats
        left = slope**2 / max(2.0 * abs(curvature), 1.0)
        assert left < 1e-3 * (1.0 + gain), (key, step)


def near_the_end(name, array, step):
    """True if a parameter is near the end of its range."""
    if name.startswith("cov") or name.endswith("cov"):
        return np.linalg.eigvalsh(array).min() < 1e-2
    return name in (*TABLES, *"habc") and (array[step != 0] < 1e-3).any()


@pytest.mark.parametrize("lost", [False, True])
def test_m_steps_of_switching_systems_end_at_the_maximum_of_the_rest(lost, rng):
    """Steps with the same beliefs, against the expected log-density of all."""
    model = random_switching(rng, 2, 2, 2)
    data = model.sample(4, 8, rng)
    if lost:
        data[0][3, 1] = data[1][2] = np.nan
    init = random_switching(rng, 2, 2, 2)
    fixed, masks = random_fixed(init, rng)
    problem = em.Problem(model._read(data))
    q = problem.believe(model._parameters, rng.dirichlet([1.0, 1.0], 28))
    held = em.whole_covariances(check_fixed(fixed, init._holdable()), init._parameters)
    law = CovariancePrior(1e-9)
    p = init._parameters
    for _ in range(1 if lost else 300):
        old, rules = p, em.Rules.of(law, 0.0, False, held, p)
        p = em.maximised(problem, p, q, rules)

    def expected(p):
        terms = problem._emission_terms(p, q.mean, q.cov, 2).sum()
        terms += problem._initial_terms(p, q.mean, q.cov, 2).sum()
        terms += (q.regimes * problem.evidence(p, q.mean, q.cov, q.lag)).sum()
        terms += xlogy(q.start_counts, p.start).sum()
        return terms + xlogy(q.switch_counts, p.switching).sum()

    assert expected(p) >= expected(old) - 1e-8
    if lost:  # what is missing is filled in by the parameters of before
        return
    new = SwitchingLDS(*p)
    for key, mask in masks.items():
        np.testing.assert_array_equal(leaves(new)[key][mask], leaves(init)[key][mask])
    for key, step in directions(new, masks):
        ends = [with_leaf(new, key, leaves(new)[key] + h * step) for h in (1e-5, -1e-5)]
        up, down = (expected(one._parameters) for one in ends)
        curvature = (up + down - 2 * expected(p)) / 1e-10
        assert abs(up - down) / 2e-5 < 1e-3 * (1.0 + abs(curvature)), (key, step)


@pytest.mark.parametrize("method", ["exact", "meanfield"])
@pytest.mark.parametrize("lost", [False, True])
def test_factorial_fits_rise_with_what_is_held(method, lost, rng):
    init = random_factorial(rng)
    data = random_factorial(rng).sample(3, 30, rng)
    if lost:
        data[0][4, 1] = data[1][3] = np.nan
    for fixed in (
        ["cov"],
        ["mean"],
        {"mean": [True, False]},
        random_fixed(init, rng)[0],
    ):
        options = {"init": init, "fixed": fixed, "max_iter": 60, "n_init": 2}
        model = FactorialHMM.fit(data, method=method, random_state=0, **options)
        trace = model.fit_result.objective_history
        assert (np.diff(trace) >= -1e-10 * (1.0 + np.abs(trace[1:]))).all()
        names = dict.fromkeys(fixed, True) if isinstance(fixed, list) else fixed
        if names.get("cov") is True:
            np.testing.assert_array_equal(model.cov, init.cov)
        if names.get("mean") is True:
            np.testing.assert_array_equal(model.mean[1], init.mean[1])


def test_one_regime_with_held_entries_is_a_linear_system(rng):
    law = random_lds(rng, 2, 2)
    data = random_lds(rng, 2, 2).sample(5, 12, rng)
    p = law.parameters()
    shared = {k: p[k] for k in SwitchingLDS._names if k in p}
    each = {k: [shared[k]] for k in shared if k.startswith("transition")}
    one = SwitchingLDS([1.0], [[1.0]], **(shared | each))
    mask = rng.random((2, 2)) < 0.5
    fixed = {"transition": mask, "observation": ~mask, "observation_cov": True}
    options = {"prior": 0.1, "max_iter": 4, "tol": 1e-12}
    a = LinearDynamicalSystem.fit(data, init=law, fixed=fixed, **options)
    b = SwitchingLDS.fit(
        data, init=one, fixed=fixed | {"transition": mask[None]}, **options
    )
    for name, array in b.parameters().items():
        if name in p:
            own = array[0] if name in each else array
            np.testing.assert_allclose(own, getattr(a, name), rtol=1e-7, atol=1e-9)
    assert a.n_parameters == b.n_parameters


def test_offsets_of_networks_stay_in_the_units_of_the_data(rng):
    """Far from the origin, where centred columns have other offsets."""
    x = 50.0 + rng.normal(size=200)
    y = 3.0 + 2.0 * x + rng.normal(size=200)
    init = LinearGaussianNetwork(["x", "y"], {("y", "x"): 1.0})
    model = LinearGaussianNetwork.fit(
        np.column_stack([x, y]), ["x", "y"], {"y": ["x"]}, init=init,
        fixed={"offsets": {"y": True}},
    )  # fmt: skip
    assert model.offsets[1] == 0.0
    assert model.coefficients[1, 0] == pytest.approx((x @ y) / (x @ x), rel=1e-10)
    assert model.n_parameters == 4


def test_further_starts_keep_what_is_held(rng):
    for kind in ("switching", "factorial", "network", "lds"):
        init = MAKERS[kind](rng)
        data = sample(MAKERS[kind](rng), 20, rng)
        fixed, masks = random_fixed(init, rng)
        own = {
            k: x
            for k, x in options_of(init).items()
            if k in ("order", "parents", "observed")
        }
        options = {"n_init": 3, "max_iter": 5, "random_state": 0, **own}
        model = type(init).fit(data, init=init, fixed=fixed, **options)
        assert len(model.fit_result.objectives) == 3
        for key, mask in masks.items():
            old = leaves(init)[key]
            np.testing.assert_array_equal(leaves(model)[key][mask], old[mask])


def test_criteria_charge_for_what_is_free(rng):
    X = rng.normal(size=(50, 2))
    init = Mixture([0.5, 0.5], Gaussian([[0.0, 0.0], [1.0, 1.0]], np.eye(2)))
    for fixed, count in (
        ("weights", 10),
        ("mean", 1 + 2 * 3),
        ({"cov": [True, False]}, 1 + 4 + 3),
        ({"components": [True, False], "mean": [True, True]}, 1 + 3),
    ):
        model = Mixture.fit(X, init=init, fixed=fixed)
        assert model.n_parameters == count
        total = model.log_likelihood(X).sum()
        assert model.aic(X) == pytest.approx(2 * count - 2 * total)
    diffuse = changed(random_lds(rng, 1, 1), transition=[[1.0]], initial_cov=[[np.inf]])
    names = ["transition", "observation", "transition_offset", "observation_offset"]
    x = rng.normal(size=(30, 1)).cumsum(axis=0)
    level = LinearDynamicalSystem.fit(x, init=diffuse, fixed=names, prior=0)
    assert level.n_parameters == 3  # two variances, and the level at the beginning
    kept = gaussian_hmm(rng)
    kept = GaussianHMM.fit(kept.sample(4, 20, rng), init=kept, fixed="mean")
    assert kept.order_states().n_parameters == kept.n_parameters == 3 + 6


@pytest.mark.parametrize(
    "kind, fixed, match",
    [
        ("factorial", {"mean": [True]}, "a list with a mask for each of the 2 chains"),
        (
            "factorial",
            {"mean": [True, [1, 0, 1]]},
            r"fixed\['mean'\]\[1\] must be True",
        ),
        (
            "factorial",
            {"cov": np.eye(2, dtype=bool)},
            r"fixed\['cov'\] must be True; it",
        ),
        ("factorial", ["noise"], "what can stay is start, transition, mean, cov"),
        ("switching", {"transition_cov": np.eye(3, dtype=bool)}, r"of shape \(2,\)"),
        ("switching", {"transition": [True, False]}, r"array of shape \(2, 1, 1\)"),
        ("network", {"covs": {"z": True}}, "'z', which is no node of h, a, b"),
        ("network", {"coefficients": {("a", "z"): True}}, r"no pair \(child, parent\)"),
        ("network", {"offsets": {"a": [1.0]}}, r"\['offsets'\]\['a'\] must be True or"),
        ("net", {"a": np.ones((3, 2), bool)}, r"array of shape \(2, 3\)"),
        ("net", 3, "fixed=3 must be a name, a list of names"),
    ],
)
def test_masks_that_do_not_suit_are_refused(kind, fixed, match, rng):
    init = MAKERS[kind](rng)
    data = sample(init, 20, rng)
    own = {
        k: x
        for k, x in options_of(init).items()
        if k in ("order", "parents", "observed")
    }
    refused(lambda: type(init).fit(data, init=init, fixed=fixed, **own), match)


@pytest.mark.parametrize("kind", ["factorial", "switching", "network", "net"])
def test_nothing_is_held_without_a_start(kind, rng):
    init = MAKERS[kind](rng)
    sizes = {
        "factorial": {"n_states": [2, 3]},
        "switching": {"n_regimes": 2, "n_states": 1},
    }.get(kind, structure(init) | {"observed": getattr(init, "observed", None)})
    name = next(iter(init._holdable()))
    data = sample(init, 5, rng)
    refused(lambda: type(init).fit(data, **sizes, fixed=name), "give it by init=")


def test_a_network_starts_from_its_own_structure(rng):
    net = network(rng)
    X = net.sample(20, rng)
    fit = functools.partial(LinearGaussianNetwork.fit, X, init=net)
    refused(lambda: fit(NET, {"a": ["h"]}), "nodes that parents= does not join")
    refused(lambda: fit(NET, ABOVE, list("bacde")), "init has observed=")
    refused(lambda: fit(["h", *NET[1:]], ABOVE), "init has order=")


def test_a_shared_covariance_stays_as_a_whole(rng):
    cov = [[[1.0]], [[1.0]]]
    tied = GaussianHMM([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], [[0.0], [3.0]], cov, True)
    x = tied.sample(3, 20, rng)
    fit = functools.partial(GaussianHMM.fit, x, init=tied)
    refused(lambda: fit(fixed={"cov": [True, False]}), "hold it of all or of none")
    assert fit(fixed="cov").n_parameters == tied.n_parameters - 1 == 5
