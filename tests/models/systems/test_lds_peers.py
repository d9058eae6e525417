"""Linear systems beside statsmodels and pykalman, where these are installed."""

import numpy as np
import pytest
from models.state_space_cases import random_lds
from models.systems.structural import CASES

from maxent.models import LinearDynamicalSystem


def peer_of(case, x):
    """The same system in statsmodels, its coordinates those of the case's `free`."""
    pytest.importorskip("statsmodels")
    from statsmodels.tsa.statespace.mlemodel import MLEModel

    init = case.start

    class Peer(MLEModel):
        start_params = np.array(case.first)
        param_names = tuple(f"p{k}" for k in range(len(case.first)))

        def __init__(self, y):
            n = init.n_states
            super().__init__(y, k_states=n, k_posdef=n)
            free = np.isinf(np.diagonal(init.initial_cov))
            if free.all():
                self.ssm.initialize_diffuse()
            else:
                self.ssm.initialize_known(init.initial_mean, init.initial_cov)
            self["selection"] = np.eye(n)

        def update(self, params, **more):
            params = super().update(params, **more)
            p = case.moved(params)
            self["transition"], self["state_cov"] = p.transition, p.transition_cov
            self["design"], self["obs_cov"] = p.observation, p.observation_cov

    return Peer(x)


@pytest.mark.filterwarnings("ignore:LinearDynamicalSystem")
@pytest.mark.parametrize("name", CASES)
def test_likelihood_maximum_and_errors_are_those_of_statsmodels(name):
    case = CASES[name]
    x = case.data(np.random.default_rng(3))
    peer = peer_of(case, x)
    from statsmodels.tools.numdiff import approx_hess3

    fitted = LinearDynamicalSystem.fit(
        x, init=case.start, prior=0, tol=1e-11, **case.options
    )
    values = case.values(fitted)
    # likelihoods at the same point, with the exact diffuse start
    assert fitted.log_likelihood(x)[0] == pytest.approx(peer.loglike(values), abs=1e-6)
    errors = case.errors(fitted.standard_errors(x, **case.questions))
    start = values + 0.3 * errors
    options = {"disp": 0, "maxiter": 2000, "maxfun": 4000, "cov_type": "none"}
    found = peer.fit(start, method="nm", xtol=1e-9, ftol=1e-12, **options)
    assert found.llf <= fitted.log_likelihood(x)[0] + 1e-7
    assert (np.abs(values - found.params) < 1e-3 * errors).all()
    # second differences of a likelihood lose half of the digits
    information = -approx_hess3(values, peer.loglike, epsilon=0.01 * errors)
    theirs = np.sqrt(np.diagonal(np.linalg.inv(information)))
    np.testing.assert_allclose(errors, theirs, rtol=2e-3)


@pytest.mark.filterwarnings("ignore:LinearDynamicalSystem")
def test_filters_and_em_steps_are_those_of_pykalman(rng):
    pykalman = pytest.importorskip("pykalman")
    model = random_lds(rng, 2, 3)
    p = model.parameters()
    peer = pykalman.KalmanFilter(
        p["transition"],
        p["observation"],
        p["transition_cov"],
        p["observation_cov"],
        p["transition_offset"],
        p["observation_offset"],
        p["initial_mean"],
        p["initial_cov"],
    )
    x = model.sample(1, 40, rng)[0]
    x[7] = np.nan
    seen = np.ma.masked_invalid(x)
    for ours, theirs in (
        (model.filter(x)[0], peer.filter(seen)),
        (model.posterior(x)[0], peer.smooth(seen)),
    ):
        np.testing.assert_allclose(ours.mean, theirs[0], atol=1e-8)
        np.testing.assert_allclose(ours.cov, theirs[1], atol=1e-8)
    value = model.log_likelihood(x)[0]
    assert peer.loglikelihood(seen) == pytest.approx(value, abs=1e-8)
    fitted = LinearDynamicalSystem.fit(
        x, init=model, prior=0, max_iter=3, tol=1e-15,
        fixed=["transition", "observation", "transition_offset", "observation_offset"],
    )  # fmt: skip
    found = peer.em(seen, n_iter=3)
    np.testing.assert_allclose(fitted.transition_cov, found.transition_covariance)
    np.testing.assert_allclose(fitted.observation_cov, found.observation_covariance)
