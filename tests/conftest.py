"""Shared fixtures: every test must pass for any seed from 0 to 29."""

import os

if "PYTEST_XDIST_WORKER" in os.environ:  # processes side by side: no thread spins
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import numpy as np
import pytest


def pytest_addoption(parser):
    parser.addoption("--run-slow", action="store_true", help="run the slow checks too")
    parser.addoption("--seed", type=int, default=None, help="seed of the fixtures")
    parser.addoption(
        "--seeded-only",
        action="store_true",
        help="leave out the tests that are the same for every seed",
    )


def pytest_collection_modifyitems(config, items):
    if config.getoption("--seeded-only"):
        same = [item for item in items if "seed" not in item.fixturenames]
        items[:] = [item for item in items if "seed" in item.fixturenames]
        config.hook.pytest_deselected(items=same)
    if config.getoption("--run-slow"):
        return
    skip = pytest.mark.skip(reason="slow: run with --run-slow")
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(skip)


@pytest.fixture
def seed(request):
    given = request.config.getoption("--seed")
    return int(os.environ.get("MAXENT_TEST_SEED", 42)) if given is None else given


@pytest.fixture
def rng(seed):
    return np.random.default_rng(seed)
