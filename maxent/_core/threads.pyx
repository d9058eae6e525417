"""Threads of the compiled loops: what OpenMP says, and whether they are worth it.

The policy for the number that is asked for lives in ``maxent._support``.  Here a loop
that has work for so many threads learns how many it gets.  Where another program keeps
a processor busy, the second thread of a short loop is often not running when the first
one is done, which then waits for it: the loop takes longer than on one thread.  The
system says so itself (Linux).  Before a loop after a pause, it tells how many threads
want to run now; a second look soon after leaves out those that are done by then.
Between loops it tells how often it takes a processor away from a thread that could go
on: some 10 to 60 times a second on an idle machine, 150 to 700 beside one busy
neighbour (two threads and processors).  More threads are interrupted more often, and
count for less.  Results do not depend on the number of threads.
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
    #define MX_PAUSE 5.0      /* ms without a loop, after which our own threads sleep */
    #define MX_LOOK 3.0       /* ms on one thread after a look that finds no room */

    typedef struct {
        double recent;        /* switches, those of long ago counted less */
        double rest, hold;    /* ms to go on one thread; ms of the next such rest */
        int full;             /* whether the last look found no processor left */
    } mx_pace;

    /* So many ms and involuntary switches since the last call, of two threads: 1 while
     * contended. `full`: whether no processor is left for all threads now, if known. */
    static int mx_contended(mx_pace *p, double ms, double switches, int full) {
        if (p->rest > ms) {                    /* switches meanwhile say nothing */
            p->rest -= ms;
            return 1;
        }
        if (full) {                            /* may be a thread of the system, */
            p->recent = 0.0;                   /* which ends soon: look again */
            p->rest = p->full ? MX_FIRST : MX_LOOK;
            p->full = 1;
            return 1;
        }
        p->full = 0;
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
    #include <dirent.h>
    #include <fcntl.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <sys/resource.h>
    #include <time.h>
    #include <unistd.h>
    /* The beginning of a small file as text; its length, 0 without one. */
    static size_t mx_text(const char *path, char *text, size_t room) {
        ssize_t size;
        int file = open(path, O_RDONLY | O_CLOEXEC);
        if (file < 0) return 0;
        size = read(file, text, room - 1);
        close(file);
        text[size > 0 ? size : 0] = 0;
        return size > 0 ? (size_t)size : 0;
    }

    /* Threads of this process that want to run; those of BLAS wait for work busily, but
     * make way. */
    static int mx_own_running(void) {
        char path[64], text[256];
        const char *at;
        struct dirent *entry;
        int found = 0;
        DIR *tasks = opendir("/proc/self/task");
        if (!tasks) return 0;
        while ((entry = readdir(tasks))) {
            if (entry->d_name[0] == '.') continue;
            snprintf(path, sizeof path, "/proc/self/task/%.20s/stat", entry->d_name);
            if (!mx_text(path, text, sizeof text)) continue;
            at = strrchr(text, ')');           /* of its name, the state comes next */
            found += at && at[1] == ' ' && at[2] == 'R';
        }
        closedir(tasks);
        return found;
    }

    /* 1 if threads of others that want to run now and so many of ours outnumber the
     * processors. */
    static int mx_full(int n_threads) {
        char text[128];
        int running = 0, total = 0;
        long room = sysconf(_SC_NPROCESSORS_ONLN) - n_threads;
        if (room < 0) room = 0;                /* more threads were asked for */
        if (!mx_text("/proc/loadavg", text, sizeof text)) return 0;
        if (sscanf(text, "%*s %*s %*s %d/%d", &running, &total) != 2) return 0;
        return running - 1 > room && running - mx_own_running() > room;
    }

    /* As above for the thread that calls, from the clock and the system's count, with
     * so many threads; with none, switches since the last call are left out. */
    static int mx_contended_now(int n_threads) {
        static __thread mx_pace pace = {0.0, 0.0, MX_FIRST, 0};
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
        int full = n_threads && (then < 0.0 || ms > MX_PAUSE || pace.rest > 0.0)
                   && pace.rest <= ms && mx_full(n_threads);
        then = now;
        before = (double)use.ru_nivcsw;
        return mx_contended(&pace, ms, switches, full);
    }
    #else
    static int mx_contended_now(int n_threads) { (void)n_threads; return 0; }
    #endif
    """
    ctypedef struct mx_pace:
        double recent, rest, hold
        int full
    const int mx_has_openmp
    int omp_get_max_threads() noexcept nogil
    int mx_contended(mx_pace* p, double ms, double switches, int full) noexcept nogil
    int mx_contended_now(int n_threads) noexcept nogil
    const double MX_FIRST

cdef enum:
    SHORT = 150000         # ns: a loop that is not worth threads
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
    """What the rule says after each (ms, involuntary switches of two threads, full)."""
    cdef mx_pace pace
    cdef Py_ssize_t i
    cdef list said = []
    pace.recent, pace.rest, pace.hold, pace.full = 0., 0., MX_FIRST, 0
    for i in range(history.shape[0]):
        said.append(bool(mx_contended(
            &pace, history[i, 0], history[i, 1], <int>history[i, 2])))
    return said
