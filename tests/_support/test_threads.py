"""The thread policy: who may say how many, and one thread for BLAS."""

import os
import subprocess
import sys
import threading

import pytest
from maxent._core.threads import (
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
