"""The kernel dual by sequential minimal optimisation, callable without the GIL.

    cdef DualMachine machine
    if dual_open(&machine, &prior, K, ld, n, a, residual, level, rate, weight, sides):
        ...                                     # out of memory
    while dual_run(&machine, 1e-3, 100000) == DUAL_RUNNING:
        ...                                     # look for interrupts
    dual_read(&machine, residual)
    dual_close(&machine)
"""

from maxent._core.potentials cimport Potential

cdef enum DualStatus:
    DUAL_CONVERGED = 0
    DUAL_RUNNING = 1        # the steps allowed are spent
    DUAL_STALLED = 2        # single precision has no more digits
    DUAL_UNBOUNDED = 3
    DUAL_NONFINITE = 4

cdef struct DualRow:
    # One signed multiplier a: phi(|a|) with the row's own level, rate and weight.
    double level
    double rate
    double weight           # infinite: no potential at all (a Gaussian bias)
    int sides               # 1: a >= 0, 2: a <= 0, 3: both

cdef struct DualMachine:
    Potential prior
    const float* K          # n rows of `ld` floats; finite up to dual_padded(n)
    Py_ssize_t ld
    Py_ssize_t n
    Py_ssize_t size
    double* a               # (n,) the caller's, changed in place
    DualRow* rows
    float* v                # bias that each row asks for, less the current one
    float* up
    float* low
    float* e
    float* lanes
    Py_ssize_t next         # row with the largest v + up
    Py_ssize_t steps
    Py_ssize_t since        # step of the last marked progress
    double least            # optimality gap then
    double end              # multipliers stay below this share of their supremum
    double huge             # a longer step means that the dual is unbounded
    double violation        # optimality gap
    double middle           # middle of it: change of bias it asks for

cdef Py_ssize_t dual_padded(Py_ssize_t n) noexcept nogil
cdef int dual_open(
    DualMachine* machine, const Potential* prior, const float* K, Py_ssize_t ld,
    Py_ssize_t n, double* a, const double* residual, const double* level,
    const double* rate, const double* weight, const signed char* sides
) noexcept nogil
cdef int dual_run(DualMachine* machine, double tol, Py_ssize_t steps) noexcept nogil
cdef void dual_read(const DualMachine* machine, double* residual) noexcept nogil
cdef void dual_close(DualMachine* machine) noexcept nogil

cdef double row_slope(
    const Potential* p, const DualRow* row, double a, int direction) noexcept nogil
cdef double row_curvature(
    const Potential* p, const DualRow* row, double a) noexcept nogil
cdef double row_upper(const Potential* p, const DualRow* row) noexcept nogil
cdef double solve_pair(
    const Potential* p, const DualRow* ri, const DualRow* rj, double ai, double aj,
    double excess, double eta) noexcept nogil
