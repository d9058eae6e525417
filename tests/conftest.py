"""Shared fixtures: every test must pass for any seed from 0 to 29."""

import faulthandler
import gc
import os
import sys
import time

if "PYTEST_XDIST_WORKER" in os.environ:  # processes side by side: no thread spins
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

# The same examples in every run, however long a busy machine takes over them.
settings.register_profile(
    "any machine",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("any machine")

_LEFT_OUT = ("slow", "timed")  # marks of tests that are run on demand
_HUNG, _TURN = 900, 60  # s after which a test counts as hung, and of one watch
_STDERR, _WATCHED = pytest.StashKey[int](), pytest.StashKey[float]()


def pytest_configure(config):
    config.stash[_STDERR] = os.dup(sys.__stderr__.fileno())
    config.stash[_WATCHED] = -np.inf


def pytest_unconfigure(config):
    faulthandler.cancel_dump_traceback_later()
    os.close(config.stash[_STDERR])


def pytest_runtest_setup(item):
    """End a run that hangs, and say where; one watch, a thread, is for many tests."""
    stash, now = item.config.stash, time.monotonic()
    if now > stash[_WATCHED] + _TURN:
        faulthandler.dump_traceback_later(_HUNG, exit=True, file=stash[_STDERR])
        stash[_WATCHED] = now


def pytest_addoption(parser):
    for kind in _LEFT_OUT:
        parser.addoption(
            f"--run-{kind}", action="store_true", help=f"run the {kind} checks too"
        )
    parser.addoption("--seed", type=int, default=None, help="seed of the fixtures")
    parser.addoption(
        "--every-cell",
        action="store_true",
        help="every cell of the table of invariances, on several draws",
    )
    parser.addoption(
        "--seeded-only",
        action="store_true",
        help="leave out the tests that are the same for every seed",
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Thousands of tests live to the end: the collector of garbage passes them over."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config, items):
    if config.getoption("--seeded-only"):
        same = [item for item in items if "seed" not in item.fixturenames]
        items[:] = [item for item in items if "seed" in item.fixturenames]
        config.hook.pytest_deselected(items=same)
    for kind in _LEFT_OUT:
        if config.getoption(f"--run-{kind}"):
            continue
        skip = pytest.mark.skip(reason=f"{kind}: run with --run-{kind}")
        for item in items:
            if item.get_closest_marker(kind):
                item.add_marker(skip)


@pytest.fixture(autouse=True)
def fixed_draws_of_peers():
    """NumPy's global generator, from which other libraries draw, as in every run."""
    np.random.seed(0)  # noqa: NPY002


@pytest.fixture(autouse=True)
def no_figures_left():
    """Figures of one test are not counted with those of another."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture
def seed(request):
    given = request.config.getoption("--seed")
    return int(os.environ.get("MAXENT_TEST_SEED", 42)) if given is None else given


@pytest.fixture
def rng(seed):
    return np.random.default_rng(seed)
