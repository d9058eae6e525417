"""Array passes over the dual potentials of :file:`potentials.pxd`.

Each pass takes the dimensionless multiplier u or shortfall x (see the .pxd) as a
contiguous double array and fills ``out``.
"""

from cpython.bytes cimport PyBytes_AS_STRING
from cython.parallel cimport prange
from libc.stdint cimport uintptr_t

from maxent._core.threads cimport team

cdef extern from "machines/rbf_loops.h" nogil:
    void mx_softplus_sigmoid(
        const double* x, Py_ssize_t n, double* value, double* slope) noexcept

cdef enum:
    CHUNK = 8192        # entries of a part, at least

cdef double NS = 3.5    # of an entry

cdef enum Pass:
    VALUE = 0
    SLOPE = 1
    CURVATURE = 2
    LOSS = 3
    LOSS_ARGMAX = 4
    LOSS_CURVATURE = 5


cdef const double* table_of(table) except NULL:
    cdef const double* numbers
    if type(table) is bytes and len(table) > 8 * HEAD:
        numbers = <const double*><const void*>PyBytes_AS_STRING(table)
        if len(table) == 8 * (HEAD + 2 * <Py_ssize_t>numbers[0]):
            return numbers
    raise ValueError("nodes without their table describe no margin prior; pass the "
                     "core_spec of one")


cdef Potential unpack_potential(tuple spec) except *:
    """(kind, shape, upper, address of g, of g', of -g'') -> struct.

    A distribution on nodes has the bytes of its table in place of the addresses: the
    struct is valid as long as the tuple lives. ValueError for another tuple, for a
    custom one without addresses, and for nodes without a table.
    """
    cdef Potential p
    if spec is None or len(spec) != 6 or (spec[0] == CUSTOM and not all(spec[3:])):
        raise ValueError(
            f"spec={spec!r} describes no margin prior; pass the core_spec of one")
    p.kind = spec[0]
    p.shape = spec[1]
    p.upper = spec[2]
    p.table = NULL
    p.value = p.slope = p.curvature = NULL
    if p.kind == NODES:
        p.table = table_of(spec[3])
        return p
    p.value = <unit_function><uintptr_t>spec[3]
    p.slope = <unit_function><uintptr_t>spec[4]
    p.curvature = <unit_function><uintptr_t>spec[5]
    return p


cdef void evaluate_some(
    const Potential* p, int which, const double* x, Py_ssize_t start, Py_ssize_t stop,
    double* out) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(start, stop):
        if which == VALUE:
            out[i] = potential_value(p, x[i])
        elif which == SLOPE:
            out[i] = potential_slope(p, x[i])
        elif which == CURVATURE:
            out[i] = potential_curvature(p, x[i])
        elif which == LOSS:
            out[i] = conjugate_value(p, x[i])
        elif which == LOSS_ARGMAX:
            out[i] = conjugate_argmax(p, x[i])
        else:
            out[i] = conjugate_curvature(p, x[i])


cdef Py_ssize_t chunks_of(const Potential* p, Py_ssize_t n) noexcept nogil:
    """Parts for threads; a user's functions are called on one."""
    return 1 if p.kind == CUSTOM else 1 + n // CHUNK


def evaluate(
    tuple spec, int which, const double[::1] x, double[::1] out, int n_threads=1
):
    """out[i] = g, g', -g'', G, G' or G'' at x[i], for which = 0 .. 5."""
    cdef Potential p = unpack_potential(spec)
    cdef Py_ssize_t n = x.shape[0], parts = chunks_of(&p, n), k
    cdef int threads
    if n == 0:
        return
    threads = team(n_threads, parts, NS * n)
    for k in prange(parts, nogil=True, num_threads=threads):
        evaluate_some(&p, which, &x[0], n * k // parts, n * (k + 1) // parts, &out[0])


cdef void evaluate_losses(
    const Potential* p, const double* x, Py_ssize_t start, Py_ssize_t stop,
    double* value, double* slope, double* curvature) noexcept nogil:
    cdef Py_ssize_t i
    cdef double u
    if p.kind == LOGISTIC:
        mx_softplus_sigmoid(x + start, stop - start, value + start, slope + start)
    for i in range(start, stop):
        if p.kind == LOGISTIC:
            curvature[i] = slope[i] * (1. - slope[i])
        elif p.kind >= UNIFORM_EXPONENTIAL:       # one search for the three
            u = slope[i] = conjugate_argmax(p, x[i])
            value[i] = attained_value(p, x[i], u)
            curvature[i] = 0. if u <= 0 else 1. / potential_curvature(p, u)
        else:
            value[i] = conjugate_value(p, x[i])
            slope[i] = conjugate_argmax(p, x[i])
            curvature[i] = conjugate_curvature(p, x[i])


def evaluate_loss(
    tuple spec,
    const double[::1] x,          # IN   (n,) shortfalls rate * (level - m)
    double[::1] value,            # OUT  (n,) G(x)
    double[::1] slope,            # OUT  (n,) G'(x)
    double[::1] curvature,        # OUT  (n,) G''(x)
    int n_threads=1,
):
    """Loss and its two derivatives in one pass."""
    cdef Potential p = unpack_potential(spec)
    cdef Py_ssize_t n = x.shape[0], parts = chunks_of(&p, n), k
    cdef int threads
    if n == 0:
        return
    threads = team(n_threads, parts, 3. * NS * n)
    for k in prange(parts, nogil=True, num_threads=threads):
        evaluate_losses(&p, &x[0], n * k // parts, n * (k + 1) // parts, &value[0],
                        &slope[0], &curvature[0])


cdef void compare_some(
    const Potential* p, const double* u, const double* x, Py_ssize_t start,
    Py_ssize_t stop, double* out) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(start, stop):
        out[i] = fenchel_young(p, u[i], x[i])


def evaluate_fenchel_young(
    tuple spec,
    const double[::1] u,          # IN   (n,)
    const double[::1] x,          # IN   (n,)
    double[::1] out,              # OUT  (n,)
    int n_threads=1,
):
    """out[i] = G(x) - x u - g(u) >= 0."""
    cdef Potential p = unpack_potential(spec)
    cdef Py_ssize_t n = u.shape[0], parts = chunks_of(&p, n), k
    cdef int threads
    if n == 0:
        return
    threads = team(n_threads, parts, 3. * NS * n)
    for k in prange(parts, nogil=True, num_threads=threads):
        compare_some(&p, &u[0], &x[0], n * k // parts, n * (k + 1) // parts, &out[0])
