"""Linear Gaussian networks and their kernel."""

import numpy as np
import pytest
from models.state_space_cases import covariance, random_lds
from oracles import state_space as dense
from refusals import refused
from scipy import stats

from maxent.kernels import lds_kernel, linear_gaussian_kernel
from maxent.models import LinearGaussianNetwork

ORDER = [("h", 2), ("a", 1), ("g", 1), ("b", 3)]
ABOVE = {"a": ["h"], "g": ["h", "a"], "b": ["g", "a"]}


def random_net(rng, order=ORDER, above=ABOVE, observed=("b", "a")):
    size = dict(order)
    return LinearGaussianNetwork(
        order,
        {
            (child, parent): rng.normal(size=(size[child], size[parent]))
            for child, parents in above.items()
            for parent in parents
        },
        {name: rng.normal(size=n) for name, n in order},
        {name: covariance(rng, n) for name, n in order},
        observed,
    )


def test_a_number_is_the_variance_of_every_column_of_a_node():
    order = ["a", ("b", 2)]
    net = LinearGaussianNetwork(order, {}, covs={"a": 1.0, "b": 4.0})
    np.testing.assert_array_equal(net.covs, np.diag([1.0, 4.0, 4.0]))
    net = LinearGaussianNetwork(order, {}, covs=2.0)
    np.testing.assert_array_equal(net.covs, 2.0 * np.eye(3))


def test_moments_are_those_of_draws_from_node_to_node(rng):
    net = random_net(rng)
    n = 20000
    X, hidden = net.sample(n, rng, return_hidden=True)
    both = np.column_stack([hidden[:, :2], X[:, 3], hidden[:, 2], X[:, :3]])
    error = (both.mean(axis=0) - net.mean) / np.sqrt(np.diagonal(net.cov) / n)
    assert np.abs(error).max() < 5.0
    white = np.linalg.solve(np.linalg.cholesky(net.cov), (both - net.mean).T)
    assert np.abs(white @ white.T / n - np.eye(7)).max() < 5.0 * np.sqrt(2.0 / n)


def test_likelihood_is_the_product_of_the_nodes_where_all_are_observed(rng):
    net = random_net(rng, observed=["h", "a", "g", "b"])
    X = net.sample(5, rng)
    place = {"h": slice(0, 2), "a": slice(2, 3), "g": slice(3, 4), "b": slice(4, 7)}
    total = np.zeros(5)
    for own in place.values():
        mean = net.offsets[own] + X @ net.coefficients[own].T
        for i in range(5):
            law = stats.multivariate_normal(mean[i], net.covs[own, own])
            total[i] += law.logpdf(X[i, own])
    np.testing.assert_allclose(net.log_likelihood(X), total, atol=1e-10)


def test_posterior_times_marginal_is_the_joint_law(rng):
    net = random_net(rng)
    X = net.sample(3, rng)
    mean, cov = net.posterior(X)
    whole = net.marginal(["h", "g", "b", "a"])
    for i in range(3):
        point = rng.normal(size=3)
        own = stats.multivariate_normal(mean[i], cov).logpdf(point)
        joint = whole.log_prob(np.r_[point, X[i]][None])[0]
        assert own + net.log_likelihood(X)[i] == pytest.approx(joint, abs=1e-9)


def test_missing_entries_are_conditional_means_of_the_dense_gaussian(rng):
    net = random_net(rng)
    law, X = net.marginal(), net.sample(9, rng)
    lost = rng.random(X.shape) < 0.4
    lost[0], lost[1], lost[2] = False, True, [True, False, False, True]
    filled, cov = net.impute(np.where(lost, np.nan, X), return_cov=True)
    np.testing.assert_array_equal(filled[~lost], X[~lost])
    for i, m in enumerate(lost):
        S, o = law.cov, ~m
        K = np.linalg.solve(S[np.ix_(o, o)], S[np.ix_(o, m)]).T
        mean = law.mean[m] + K @ (X[i, o] - law.mean[o])
        np.testing.assert_allclose(filled[i, m], mean, rtol=1e-10)
        expected = np.zeros_like(S)
        expected[np.ix_(m, m)] = S[np.ix_(m, m)] - K @ S[np.ix_(o, m)]
        np.testing.assert_allclose(cov[i], expected, atol=1e-10 * np.abs(S).max())
    whole, none = net.impute(X, return_cov=True)
    np.testing.assert_array_equal(whole, X)
    np.testing.assert_array_equal(none, np.zeros((9, 4, 4)))


@pytest.mark.parametrize(
    "size, above, observed",
    [
        (2, ABOVE, ("h", "a", "g", "b")),
        (2, {"b": ["a"], "g": ["a", "h"]}, ("h", "a", "g", "b")),
        (2, ABOVE, ("a", "g", "b")),  # as many as without structure
        (1, {"a": ["h"], "g": ["h"], "b": ["h"]}, ("a", "g", "b")),  # one factor
    ],
)
def test_parameters_are_the_directions_in_which_the_law_moves(
    size, above, observed, rng
):
    net = random_net(rng, [("h", size), *ORDER[1:]], above, observed)
    at_B = np.argwhere(net.coefficients)
    at_S = np.argwhere(np.tril(net.covs))

    def moments(free):
        B, S = np.zeros_like(net.coefficients), np.zeros_like(net.covs)
        b, (i, j), (k, m) = free[: len(B)], at_B.T, at_S.T
        B[i, j] = free[len(B) : len(B) + len(i)]
        S[k, m] = S[m, k] = free[len(B) + len(i) :]
        law = LinearGaussianNetwork(net.order, B, b, S, observed).marginal()
        return np.concatenate([law.mean, law.cov[np.tril_indices(len(law.mean))]])

    free = np.concatenate(
        [net.offsets, net.coefficients[tuple(at_B.T)], net.covs[tuple(at_S.T)]]
    )
    steps = 1e-5 * np.eye(len(free))
    J = np.array([(moments(free + e) - moments(free - e)) / 2e-5 for e in steps])
    assert net.n_parameters == np.linalg.matrix_rank(J, tol=1e-6)
    X = net.sample(5, rng)
    X[0, 0], X[1] = np.nan, np.nan
    total = net.log_likelihood(X).sum()
    assert net.bic(X) == pytest.approx(np.log(4) * net.n_parameters - 2 * total)
    assert net.aic(X) == pytest.approx(2 * net.n_parameters - 2 * total)


def test_parameters_may_be_blocks_or_whole_matrices(rng):
    net = random_net(rng)
    assert LinearGaussianNetwork(**net.parameters()) == net
    assert LinearGaussianNetwork.from_spec(net.get_spec()) == net


def test_a_fit_without_hidden_nodes_is_regression(rng):
    net = random_net(rng, observed=["h", "a", "g", "b"])
    X, w = net.sample(60, rng), rng.uniform(0.1, 2.0, 60)
    fitted = LinearGaussianNetwork.fit(X, ORDER, ABOVE, weights=w)
    assert fitted.fit_result.converged
    Z = np.column_stack([X[:, 3], X[:, 2], np.ones(60)])
    root = np.sqrt(w)[:, None]
    slope, *_ = np.linalg.lstsq(root * Z, root * X[:, 4:], rcond=None)
    np.testing.assert_allclose(fitted.coefficients[4:, [3, 2]], slope[:2].T, atol=1e-8)
    np.testing.assert_allclose(fitted.offsets[4:], slope[2], atol=1e-8)
    r = X[:, 4:] - Z @ slope
    np.testing.assert_allclose(
        fitted.covs[4:, 4:], (r * w[:, None]).T @ r / w.sum(), atol=1e-8
    )


def worst_step(seed):
    rng = np.random.default_rng(seed)
    names = [(f"x{i}", int(rng.integers(1, 3))) for i in range(rng.integers(2, 5))]
    above = {
        names[i][0]: [names[j][0] for j in range(i) if rng.random() < 0.6]
        for i in range(len(names))
    }
    shown = [name for name, _ in names if rng.random() < 0.6] or [names[-1][0]]
    net = random_net(rng, names, above, shown)
    X = net.sample(int(rng.integers(1, 40)), rng)
    if rng.random() < 0.5:  # rows that miss parts
        lost = rng.random(X.shape) < 0.3
        X[lost & (np.arange(len(X)) > 0)[:, None]] = np.nan
    fitted = LinearGaussianNetwork.fit(
        X, names, above, shown, prior=rng.choice([0.1, 1.0]), max_iter=20, tol=1e-15,
        random_state=rng,
    )  # fmt: skip
    trace = fitted.fit_result.objective_history
    steps = np.diff(trace) / (1.0 + np.abs(trace[1:]))
    return steps.min(initial=0.0)


def test_a_hidden_cause_is_factor_analysis(rng):
    """EM reaches the likelihood of scikit-learn's factor analysis."""
    from sklearn.decomposition import FactorAnalysis

    order = [("f", 1), *((f"x{i}", 1) for i in range(4))]
    above = {f"x{i}": ["f"] for i in range(4)}
    shown = [f"x{i}" for i in range(4)]
    # loadings near one and noise of its own everywhere: a variance that goes to zero
    # makes EM slow without end, here and in the peer
    noise = rng.normal(size=(300, 4)) * rng.uniform(0.5, 1.0, 4)
    X = rng.normal(size=(300, 1)) * rng.uniform(0.7, 1.5, 4) + noise
    fitted = LinearGaussianNetwork.fit(
        X, order, above, shown, tol=1e-12, max_iter=20000, random_state=0
    )
    peer = FactorAnalysis(1, tol=1e-12, max_iter=20000, svd_method="lapack").fit(X)
    value = fitted.log_likelihood(X).mean()
    assert value > peer.score(X) - 1e-6


# -- kernel ----------------------------------------------------------------------------
def test_kernel_is_that_of_the_observed_gaussians(rng):
    P = [random_net(rng), random_net(rng, observed=["a", "b"])]
    P.append(random_net(rng, [("b", 3), ("a", 1)], {"a": ["b"]}, ["a", "b"]))
    rho = [0.25, 0.5, 0.8, 1.0, 1.7]
    L = linear_gaussian_kernel(P, rho=rho, log=True)
    laws = [net.marginal(["b", "a"]) for net in P]
    for i, p in enumerate(laws):
        for j, q in enumerate(laws):
            for k, power in enumerate(rho):
                value = dense.log_affinity(p.mean, p.cov, q.mean, q.cov, power)
                assert L[i, j, k] == pytest.approx(value, rel=1e-9, abs=1e-9)
    K = linear_gaussian_kernel(P, normalize=True)
    np.testing.assert_array_equal(np.diagonal(K), 1.0)
    np.testing.assert_allclose(linear_gaussian_kernel(P[:1], P[1:]), K[:1, 1:])


def test_a_system_written_as_a_network_has_the_same_kernel(rng):
    systems = [random_lds(rng, 2, 2) for _ in range(3)]
    nets = []
    for p in systems:
        order = [(f"s{t}", 2) for t in range(4)] + [(f"x{t}", 2) for t in range(4)]
        coefficients, offsets, covs = {}, {}, {}
        for t in range(4):
            coefficients[f"x{t}", f"s{t}"] = p.observation
            offsets[f"x{t}"], covs[f"x{t}"] = p.observation_offset, p.observation_cov
            offsets[f"s{t}"], covs[f"s{t}"] = p.initial_mean, p.initial_cov
            if t:
                coefficients[f"s{t}", f"s{t - 1}"] = p.transition
                offsets[f"s{t}"], covs[f"s{t}"] = p.transition_offset, p.transition_cov
        shown = [f"x{t}" for t in range(4)]
        nets.append(LinearGaussianNetwork(order, coefficients, offsets, covs, shown))
    for rho in (0.3, 1.0):
        np.testing.assert_allclose(
            linear_gaussian_kernel(nets, rho=rho, log=True),
            lds_kernel(systems, rho=rho, horizon=3, log=True),
            atol=1e-9,
        )


def test_what_is_no_network_is_refused(rng):
    make = LinearGaussianNetwork
    order = ["a", "b"]
    refused(
        lambda: make(order, {("a", "b"): 1.0}), "'b' is a parent of 'a' but does not"
    )
    refused(lambda: make(order, {("a", "c"): 1.0}), "has the key.*child, parent")
    refused(
        lambda: make(order, np.ones((2, 2))), r"coefficients\[0, 0\]=1 is not below"
    )
    refused(lambda: make(["a", "a"], {}), "each of them once")
    X = rng.normal(size=(9, 2))
    X[3, 1] = np.inf
    refused(
        lambda: make.fit(X, order, {"b": ["a"]}),
        r"X\[3, 1\]=inf must be a finite number, or NaN where it is missing",
    )
    X[:, 1] = np.nan
    refused(
        lambda: make.fit(X, order, {"b": ["a"]}),
        r"column 1 of X is missing \(NaN\) in every row",
    )
    refused(lambda: make(order, {}, covs={"a": 1.0}), "no covariance of node 'b'")
    refused(lambda: make(order, {}, covs={"a": 1.0, "b": -1.0}), "covs.'b'. is not pos")
    refused(lambda: make(order, {}, covs=[[1, 0.5], [0.5, 1]]), "outside the blocks")
    refused(
        lambda: make(order, {}, observed=["c"]), r"which is no node: choose from \['a'"
    )
    refused(lambda: make(order, {}, offsets={"c": 1.0}), "'c', which is no node")
    net = make(order, {}, covs={"a": 1.0, "b": 0.0}, observed=["b"])
    refused(lambda: linear_gaussian_kernel([net]), r"P\[0\] is singular.*rho >= 1")
    refused(lambda: net.log_likelihood([[1.0]]), "not positive definite")
    other = make(order, {}, observed=["a"])
    refused(lambda: linear_gaussian_kernel([other, make(order, {}, observed=["b"])]),
            "observed nodes")  # fmt: skip
    X = rng.normal(size=(5, 2))
    X[:, 1] = X[:, 0]
    refused(
        lambda: make.fit(X, order, {"b": ["a"]}), "covs.'b'. is singular.*prior > 0"
    )
    refused(lambda: make.fit(X, order, {"a": ["b"]}), "does not come before it")


def test_one_name_needs_no_list(rng):
    """Letters of a name are no nodes, also where nodes have these names."""
    order = ["a", "b", "ab", "c"]
    X = rng.normal(size=(30, 4)) @ rng.normal(size=(4, 4))
    net = LinearGaussianNetwork.fit(X, order, {"c": "ab"})
    assert net == LinearGaussianNetwork.fit(X, order, {"c": ["ab"]})
    assert net.marginal("ab") == net.marginal(["ab"])
    one = LinearGaussianNetwork(order, net.coefficients, observed="ab")
    assert one.observed == ("ab",)
    refused(lambda: net.marginal("ba"), "'ba', which is no node: choose from")
    refused(lambda: LinearGaussianNetwork.fit(X, order, {"c": "cd"}), "'cd' is no node")
