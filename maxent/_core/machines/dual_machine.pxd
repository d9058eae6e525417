"""The machine of the kernel dual, callable without the GIL; see :mod:`.smo`."""

from maxent._core.machines.dual_rows cimport DualRow
from maxent._core.potentials cimport Potential

cdef enum DualStatus:
    DUAL_CONVERGED = 0
    DUAL_RUNNING = 1        # the steps allowed are spent
    DUAL_STALLED = 2        # single precision has no more digits
    DUAL_UNBOUNDED = 3
    DUAL_NONFINITE = 4

cdef struct DualMachine:
    Potential prior
    const float* K          # n rows of `ld` floats; finite up to dual_padded(n)
    Py_ssize_t ld
    Py_ssize_t n
    Py_ssize_t size
    double* a               # (n,) the caller's, changed in place
    DualRow* rows
    float* v                # optimal bias of each row, less the current one
    float* up
    float* low
    float* e
    float* lanes            # extremes of v + up by chunks and lanes of the last sweep
    float* below            # and of -(v + low)
    void* memory            # of these arrays
    Py_ssize_t next         # row with the largest v + up,
    float top               # and that
    Py_ssize_t steps
    Py_ssize_t since        # step of the last marked progress
    double least            # optimality gap then
    bint steep[2]           # slope infinite at zero, at the end of the domain
    double huge             # a longer step means that the dual is unbounded
    double violation        # optimality gap
    double excess           # part of it between the rows that are being moved
    double middle           # middle of it: change of the bias
    double gain             # of the dual objective, about
    double work             # that it took
    double merit[2]         # gain for work of the last pairs, of the last rounds
    Py_ssize_t turn
    bint indefinite         # a pair has shown that K is not positive semidefinite

cdef double dual_least(const Potential* prior) noexcept nogil
cdef Py_ssize_t dual_padded(Py_ssize_t n) noexcept nogil
cdef int dual_open(
    DualMachine* machine, const Potential* prior, const float* K, Py_ssize_t ld,
    Py_ssize_t n, double* a, const double* residual, const double* level,
    const double* rate, const double* weight, const signed char* sides
) noexcept nogil
cdef void dual_read(const DualMachine* machine, double* residual) noexcept nogil
cdef void dual_close(DualMachine* machine) noexcept nogil

# what runs a machine
cdef int dual_pairs(DualMachine* machine, double tol, Py_ssize_t steps) noexcept nogil
cdef int dual_finished(DualMachine* machine, double tol) noexcept nogil
cdef void dual_move(
    DualMachine* machine, Py_ssize_t t, double a, float k_tt) noexcept nogil
cdef void dual_refresh(DualMachine* machine) noexcept nogil
cdef double dual_slope(
    const Potential* p, const DualRow* row, double a) noexcept nogil
