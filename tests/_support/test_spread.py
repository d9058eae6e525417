"""Tasks done here while they are short, and in processes where they are long."""

import os
import time
import warnings

import joblib
import numpy as np
import pytest
from sklearn.base import clone

from maxent import LMEBoltzmannMachine, MEDOutlierDetector
from maxent._support import processes
from maxent._support.processes import spread
from maxent._support.threads import effective_threads
from maxent.discrimination import LatentMixture
from maxent.kernels import product_kernel_tiles
from maxent.models import MarkovChain


def _functions():
    """What processes can have wherever they started: local names, sent by value."""

    def place(number, passing=None, seconds=0.0):
        """The number, the process it was asked in, and the threads of loops there."""
        if passing is not None:
            passing.now += seconds
        return number, os.getpid(), effective_threads()

    def broken(number):
        if number == 2:
            raise ZeroDivisionError(f"task {number}")
        return number

    class Clock:
        """The time by which tasks take the seconds that they say, on any machine."""

        now = 1e6

        def perf_counter(self):
            return self.now

    return place, broken, Clock


place, broken, Clock = _functions()


def asked(found, n):
    """Processes of n results, which are in order."""
    found = list(found)
    assert [number for number, *_ in found] == list(range(n))
    return [pid for _, pid, _ in found]


@pytest.fixture
def clock(monkeypatch):
    found = Clock()
    monkeypatch.setattr(processes, "time", found)
    return found


@pytest.fixture
def worth(monkeypatch):
    """Set the seconds that processes must save."""
    return lambda seconds: monkeypatch.setattr(processes, "_WORTH", seconds)


@pytest.mark.parametrize("n_jobs", [None, 1, 2])
def test_short_tasks_are_done_here(n_jobs, worth):
    worth(1e4)
    tasks = [(k,) for k in range(20)]
    assert set(asked(spread(place, tasks, n_jobs), 20)) == {os.getpid()}
    assert list(spread(place, [], n_jobs)) == []


def test_long_tasks_go_to_processes_but_the_first(clock):
    tasks = [(k, clock, 400.0) for k in range(5)]
    pids = asked(spread(place, tasks, 2), 5)
    assert pids[0] == os.getpid() and os.getpid() not in pids[1:]


@pytest.mark.parametrize("cost", [-1.0, 100.0])
def test_errors_are_those_of_the_task(cost, worth):
    worth(cost)
    found = spread(broken, [(k,) for k in range(5)], 2)
    assert next(found) == 0
    with pytest.raises(ZeroDivisionError, match="task 2"):
        list(found)


@pytest.mark.parametrize("cost", [-1.0, 100.0])
def test_tasks_are_given_up(cost, worth, tmp_path):
    worth(cost)

    def noted(number):
        (tmp_path / str(number)).touch()
        time.sleep(0.05 if number < 5 else 1.0)
        return number

    found = spread(noted, [(k,) for k in range(100)], 2)
    assert [next(found) for _ in range(3)] == [0, 1, 2]
    found.close()
    assert 3 <= len(list(tmp_path.iterdir())) < 50
    assert asked(spread(place, [(k,) for k in range(3)], 2), 3)  # the pool recovers


def test_a_context_of_joblib_is_heeded(worth):
    worth(-1.0)
    tasks = [(k,) for k in range(6)]
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert set(asked(spread(place, tasks, None), 6)) == {os.getpid()}
    assert set(asked(spread(place, tasks, None), 6)) == {os.getpid()}
    assert len(set(asked(spread(place, tasks, 2), 6))) > 1


def test_loops_of_tasks_done_here_take_one_thread():
    threads = [threads for *_, threads in spread(place, [(k,) for k in range(4)], 2)]
    assert threads == [1] * 4


def _calls():
    """Calls that spread tasks, by n_jobs, and the numbers they return."""
    rng = np.random.default_rng(0)
    bits, text = rng.integers(2, size=(60, 5)), rng.integers(3, size=(80, 6))
    series = [rng.integers(3, size=30) for _ in range(6)]
    boltzmann = LMEBoltzmannMachine(2, n_init=9, random_state=0, max_iter=50)
    detector = MEDOutlierDetector(LatentMixture("multinomial", random_state=0))
    chains = [MarkovChain.fit([one], n_symbols=3) for one in series]
    return {
        "candidates": lambda k: (
            clone(boltzmann).set_params(n_jobs=k).fit(bits).weights_
        ),
        "starts": lambda k: (
            clone(detector).set_params(n_jobs=k).fit(text).score_samples(text)
        ),
        "fit_many": lambda k: np.stack(
            [
                model.transition
                for model in MarkovChain.fit_many(series, n_jobs=k, n_symbols=3)
            ]
        ),
        "tiles": lambda k: product_kernel_tiles(chains, horizon=4, tile=2, n_jobs=k),
    }


@pytest.mark.parametrize("name", ["candidates", "starts", "fit_many", "tiles"])
def test_where_tasks_are_done_changes_no_bit(name, monkeypatch):
    call = _calls()[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alone = call(1)
        monkeypatch.setattr(processes, "_WORTH", -1.0)
        began, begin = [], processes._in_processes
        monkeypatch.setattr(
            processes, "_in_processes", lambda *a: began.append(1) or begin(*a)
        )
        np.testing.assert_array_equal(call(2), alone)
    assert began
