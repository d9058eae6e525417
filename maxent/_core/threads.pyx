"""Threads of the compiled loops: what OpenMP says, and whether they are worth it.

The policy for the number that is asked for lives in ``maxent._support``.  Here a loop
that has work for so many threads learns how many it gets.  Where another program keeps
a processor busy, the second thread of a short loop is often not running when the first
one is done, which then waits for it: the loop takes longer than on one thread.  The
system says so itself, by how often it takes a processor away from a thread that could
go on: some 10 to 60 times a second on an idle machine, 150 to 700 beside one busy
neighbour (two threads and processors, Linux).  More threads are interrupted more often,
and count for less.  Results do not depend on the number of threads.
"""

cdef extern from *:
    """
    #ifdef _OPENMP
    #include <omp.h>
    static const int mx_has_openmp = 1;
    #else
    static const int mx_has_openmp = 0;
    static int omp_get_max_threads(void) { return 1; }
    #endif

    #define MX_MEMORY 50.0    /* ms that a switch is remembered, about */
    #define MX_MANY 6.0       /* switches in this memory that say "contended" */
    #define MX_FIRST 50.0     /* ms on one thread before threads are tried again, */
    #define MX_LAST 400.0     /* doubled up to this while nothing changes */

    typedef struct {
        double recent;        /* switches, those of long ago counted less */
        double rest, hold;    /* ms to go on one thread; ms of the next such rest */
    } mx_pace;

    /* So many ms and involuntary switches since the last call, of two threads: 1 while
     * contended. */
    static int mx_contended(mx_pace *p, double ms, double switches) {
        if (p->rest > ms) {                    /* switches meanwhile say nothing */
            p->rest -= ms;
            return 1;
        }
        if (p->rest > 0.0) {                   /* the rest is over: try again */
            p->rest = p->recent = 0.0;
            return 0;
        }
        p->recent = (p->recent + switches) / (1.0 + ms / MX_MEMORY);
        if (p->recent < MX_MANY) {
            p->hold -= 0.25 * ms;              /* threads ran unhindered: forget */
            if (!(p->hold > MX_FIRST)) p->hold = MX_FIRST;
            return 0;
        }
        p->rest = p->hold;
        p->hold = 2.0 * p->hold < MX_LAST ? 2.0 * p->hold : MX_LAST;
        return 1;
    }

    #if defined(_OPENMP) && defined(__linux__)
    #include <sys/resource.h>
    #include <time.h>
    /* As above for the thread that calls, from the clock and the system's count, with
     * so many threads; with none, switches since the last call are left out. */
    static int mx_contended_now(int n_threads) {
        static __thread mx_pace pace = {0.0, 0.0, MX_FIRST};
        static __thread double then = -1.0, before = 0.0;
        struct timespec t;
        struct rusage use;
        double now, ms, switches;
        clock_gettime(CLOCK_MONOTONIC, &t);
        now = 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
        if (getrusage(RUSAGE_SELF, &use)) return 0;
        ms = then < 0.0 ? 0.0 : now - then;
        switches = then < 0.0 || !n_threads ? 0.0
            : ((double)use.ru_nivcsw - before) * 2.0 / n_threads;
        then = now;
        before = (double)use.ru_nivcsw;
        return mx_contended(&pace, ms, switches);
    }
    #else
    static int mx_contended_now(int n_threads) { (void)n_threads; return 0; }
    #endif
    """
    ctypedef struct mx_pace:
        double recent, rest, hold
    const int mx_has_openmp
    int omp_get_max_threads() noexcept nogil
    int mx_contended(mx_pace* p, double ms, double switches) noexcept nogil
    int mx_contended_now(int n_threads) noexcept nogil
    const double MX_FIRST

cdef enum:
    SHORT = 1000000        # ns: a loop that is not worth threads
    LONG = 100000000       # ns: a loop that gains from a processor some of the time


cdef int team(int n_threads, Py_ssize_t tasks, double ns) noexcept nogil:
    if n_threads <= 1 or tasks <= 1 or ns <= SHORT:
        return 1
    if mx_contended_now(n_threads) and ns < LONG:
        return 1
    return <int>min(<Py_ssize_t>n_threads, tasks)


def has_openmp():
    """True if the kernels were compiled with OpenMP."""
    return bool(mx_has_openmp)


def openmp_max_threads():
    """Threads a parallel region would use by default (1 without OpenMP)."""
    return omp_get_max_threads()


def threads_worth(int n_threads, Py_ssize_t tasks, double ns):
    """Threads for a compiled loop of so many tasks and so many ns on one thread."""
    return team(n_threads, tasks, ns)


def leave_out_switches():
    """Leave out what switches there were since the last loop of this thread.

    Threads of Python take the processor from one another.
    """
    mx_contended_now(0)


def contended(const double[:, ::1] history):
    """What the rule says after each (ms, involuntary switches of two threads)."""
    cdef mx_pace pace
    cdef Py_ssize_t i
    cdef list said = []
    pace.recent, pace.rest, pace.hold = 0., 0., MX_FIRST
    for i in range(history.shape[0]):
        said.append(bool(mx_contended(&pace, history[i, 0], history[i, 1])))
    return said
