"""The thread policy: who may say how many, and one thread for BLAS."""

import math
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from maxent._core.threads import (
    contended,
    has_openmp,
    openmp_max_threads,
    threads_worth,
)
from processes import run
from threadpoolctl import threadpool_info, threadpool_limits

from maxent._support.threads import (
    effective_threads,
    in_threads,
    single_threaded_blas,
    threads_of,
)

openmp = pytest.mark.skipif(not has_openmp(), reason="built without OpenMP")


def cpus():
    return len(os.sched_getaffinity(0))


def blas_threads():
    return {p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"}


@openmp
def test_a_positive_number_is_taken():
    assert effective_threads(1) == 1
    assert effective_threads(3) == 3


@openmp
def test_negative_numbers_count_from_the_cpus():
    assert 1 <= effective_threads(-1) <= os.cpu_count()
    assert effective_threads(-2) == max(1, effective_threads(-1) - 1)
    assert effective_threads(-(10**6)) == 1


@pytest.mark.parametrize("n_jobs", [0, 2**31, 2**40, 10**30, 1025, 1.5, "all", True])
def test_what_is_no_number_of_threads_is_refused(n_jobs):
    with pytest.raises(ValueError, match=r"n_jobs=.*use None|n_jobs=.*must be None"):
        effective_threads(n_jobs)


@pytest.mark.skipif(has_openmp(), reason="built with OpenMP")
def test_without_openmp_there_is_one_thread():
    assert effective_threads(7) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
def test_forked_children_have_one_thread_and_check_the_number_all_the_same():
    code = """
import os, warnings
warnings.simplefilter("ignore")  # Python warns of forks after threads
from maxent._support.threads import effective_threads

if os.fork() == 0:
    print(effective_threads(7), flush=True)
    try:
        effective_threads(0)
    except ValueError as error:
        print(error, flush=True)
    os._exit(0)
os.wait()
"""
    said = run("-c", code).splitlines()
    assert said[0] == "1"
    assert said[1].startswith("n_jobs=0 must be None")


@openmp
def test_none_is_what_openmp_would_take_and_never_more_than_the_cpus():
    assert effective_threads() == max(
        1, min(openmp_max_threads(), effective_threads(-1))
    )


@openmp
def test_limits_of_threadpoolctl_are_respected():
    with threadpool_limits(1, user_api="openmp"):
        assert effective_threads() == 1
    before = effective_threads()
    assert before >= 1


@openmp
@pytest.mark.parametrize(("given", "expected"), [("1", 1), ("2", 2), ("64", None)])
def test_the_environment_is_respected(given, expected):
    code = (
        "from maxent._support.threads import effective_threads as e;"
        "print(e(), e(-1), e(5))"
    )
    default, all_of_them, asked = map(
        int, run("-c", code, env={"OMP_NUM_THREADS": given}).split()
    )
    ceiling = all_of_them if expected is None else min(expected, all_of_them)
    assert default == ceiling
    assert asked == 5


@openmp
def test_workers_of_joblib_do_not_oversubscribe():
    code = """
import os
import subprocess
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.pop(name, None)
from joblib import Parallel, delayed
from maxent._support.threads import effective_threads

print(*Parallel(n_jobs=2)(delayed(effective_threads)() for _ in range(4)))
"""
    found = [int(k) for k in run("-c", code).split()]
    assert len(found) == 4
    assert max(found) <= max(1, cpus() // 2)


@pytest.fixture
def two_blas_threads():
    """Two threads for BLAS, whatever the environment says."""
    import scipy.linalg.cython_blas  # noqa: F401  (before the limit is set)

    with threadpool_limits(2, user_api="blas"):
        if blas_threads() != {2}:
            pytest.skip("this BLAS has one thread only")
        yield


def test_blas_is_kept_to_one_thread_inside_and_restored_after(two_blas_threads):
    with single_threaded_blas():
        assert blas_threads() == {1}
        with single_threaded_blas():
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == {2}


def test_blas_is_restored_after_an_error(two_blas_threads):
    with pytest.raises(KeyError), single_threaded_blas():
        raise KeyError
    assert blas_threads() == {2}


@openmp
def test_loops_far_below_take_the_number_of_their_estimator():
    free = effective_threads()
    with threads_of(3):
        assert effective_threads() == 3 and effective_threads(2) == 2
        with threads_of(None):
            assert effective_threads() == 3
        with threads_of(1):
            assert effective_threads() == 1
        seen = []
        other = threading.Thread(target=lambda: seen.append(effective_threads()))
        other.start()
        other.join()
        assert seen == [free]  # estimators in other threads have their own
    assert effective_threads() == free
    with pytest.raises(ValueError, match="n_jobs=0"), threads_of(0):
        pass
    assert effective_threads() == free


@openmp
@pytest.mark.skipif(sys.platform != "linux", reason="of libgomp")
@pytest.mark.parametrize("asked", [None, "777"])
def test_waiting_threads_spin_briefly_unless_the_user_says_otherwise(asked, tmp_path):
    """Threads that spin take the processor from those that they wait for."""
    script = (
        "import os; before = dict(os.environ); "
        "import maxent._core.threads; assert dict(os.environ) == before"
    )
    env = {**os.environ, "OMP_DISPLAY_ENV": "verbose"}
    for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT"):
        env.pop(name, None)
    if asked is not None:
        env["GOMP_SPINCOUNT"] = asked
    options = {"env": env, "cwd": tmp_path, "capture_output": True, "text": True}
    done = subprocess.run([sys.executable, "-c", script], **options)
    assert done.returncode == 0, done.stderr
    assert f"GOMP_SPINCOUNT = '{asked or 10000}'" in done.stderr


def history(ms, per_second, times, full=0.0):
    """Calls `ms` apart, with so many involuntary switches a second between them."""
    return np.tile([ms, 1e-3 * ms * per_second, full], (times, 1))


@pytest.mark.parametrize("ms", [0.5, 3.0, 40.0, 1e3, 1e5])
def test_the_switches_of_an_idle_machine_are_not_contention(ms):
    assert not any(contended(history(ms, 60.0, 3000)))


@pytest.mark.parametrize("ms", [0.5, 3.0, 20.0])
@pytest.mark.parametrize("per_second", [250.0, 700.0])
def test_contention_is_seen_soon_and_tried_again_ever_more_rarely(ms, per_second):
    found = np.array(contended(history(ms, per_second, round(20e3 / ms))))
    assert found.argmax() * ms <= 50.0
    change = np.flatnonzero(np.diff(found, prepend=False)) * ms
    rests, tries = change[1::2] - change[:-1:2], change[2::2] - change[1:-1:2]
    assert rests[0] <= 50.0 + ms and 300.0 < rests.max() <= 400.0 + ms
    assert (np.diff(rests) >= -ms).all()
    assert tries.max() <= 50.0
    assert found.mean() > 0.85


def test_contention_that_ends_is_forgotten():
    both = np.concatenate([history(2.0, 500.0, 1000), history(2.0, 20.0, 1000)])
    found = contended(both)
    assert any(found[:1000]) and not any(found[1201:])  # a rest is 400 ms at most
    again = contended(np.concatenate([both, history(2.0, 500.0, 34)]))[2000:]
    assert 25 <= sum(again) <= 26  # it rests briefly, as at the first time


def test_processors_that_are_full_are_seen_at_once():
    busy = history(20.0, 0.0, 50, full=1.0)
    assert all(contended(busy))
    after = contended(np.concatenate([busy, history(20.0, 20.0, 50)]))[50:]
    assert after[0] and not any(after[3:])  # within 50 ms
    # threads that wait at first are no reason to wait while nothing says so later
    assert not any(contended(history(20.0, 20.0, 50)))


@pytest.mark.parametrize("ms", [0.5, 3.0, 20.0])
def test_threads_of_the_system_that_run_for_a_moment_cost_a_moment(ms):
    """Processors that are full at one look and not at the next."""
    look = history(ms, 20.0, 500)
    look[100, 2] = look[300, 2] = 1.0
    found = np.flatnonzero(contended(look))
    alone = math.ceil(3.0 / ms)
    assert found.tolist() == [*range(100, 100 + alone), *range(300, 300 + alone)]
    look[100 + alone, 2] = 1.0  # found again at the second look: 50 ms
    found = np.flatnonzero(contended(look))
    assert (found < 300).sum() == alone + math.ceil(50.0 / ms)


@openmp
@pytest.mark.timed
@pytest.mark.skipif(sys.platform != "linux", reason="counts of Linux")
def test_short_loops_go_on_alone_where_threads_share_a_processor():
    code = """
import os, time
import numpy as np
os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
from maxent import MEDClassifier
from maxent._core.threads import threads_worth
X = np.random.default_rng(0).normal(size=(1500, 20))
machine = MEDClassifier(n_jobs=2).fit(X, X[:, 0] > 0.3)
end = time.monotonic() + 20.0
while threads_worth(2, 2, 1e7) == 2 and time.monotonic() < end:
    machine.decision_function(X)
print(threads_worth(2, 2, 1e7), threads_worth(2, 2, 1e9), time.monotonic() < end)
"""
    assert run("-c", code).split() == ["1", "2", "True"]


def test_too_little_work_is_not_worth_threads():
    assert threads_worth(4, 100, 1e5) == threads_worth(4, 1, 1e9) == 1
    assert threads_worth(4, 3, 1e9) == 3 and threads_worth(1, 3, 1e9) == 1


@pytest.mark.parametrize("n_threads", [1, 3])
def test_every_item_is_done_once_and_loops_inside_have_one_thread(n_threads):
    done, inside = [], set()

    def work(item, thread, stop):
        assert 0 <= thread < n_threads and not stop.is_set()
        inside.add(effective_threads())
        done.append(item)

    in_threads(work, 50, n_threads)
    assert sorted(done) == list(range(50)) and inside == {1}


@pytest.mark.parametrize("where", [0, 1])
def test_an_error_in_one_thread_stops_the_others(where):
    here, done = threading.Barrier(2), []

    def work(item, thread, stop):
        if item < 2:
            here.wait(100)  # one item for each thread
            if thread == where:
                raise ValueError("that item")
            assert stop.wait(100)
        done.append(item)

    with pytest.raises(ValueError, match="that item"):
        in_threads(work, 1000, 2)
    assert len(done) == 1


def test_an_interrupt_does_not_wait_for_the_others():
    here, go, done = threading.Barrier(2), threading.Event(), []
    before = blas_threads()

    def work(item, thread, stop):
        here.wait(100)
        if thread == 0:
            raise KeyboardInterrupt
        assert go.wait(100)
        done.append((item, stop.is_set()))

    with pytest.raises(KeyboardInterrupt):
        in_threads(work, 1000, 2)
    assert not done and blas_threads() == {1}  # still at work
    go.set()
    for one in threading.enumerate():
        if one is not threading.current_thread() and "in_threads" in one.name:
            one.join(100)
    assert [stopped for _, stopped in done] == [True] and blas_threads() == before
