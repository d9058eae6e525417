"""The two-variable problem of the kernel dual, callable without the GIL."""

from maxent._core.potentials cimport Potential

cdef struct DualRow:
    # One signed multiplier a: phi(|a|) with the row's own level, rate and weight.
    double level
    double rate
    double weight           # infinite: no potential at all (a Gaussian bias)
    int sides               # 1: a >= 0, 2: a <= 0, 3: both

cdef double row_slope(
    const Potential* p, const DualRow* row, double a, int direction) noexcept nogil
cdef double row_curvature(
    const Potential* p, const DualRow* row, double a) noexcept nogil
cdef double row_upper(const Potential* p, const DualRow* row) noexcept nogil
cdef double solve_pair(
    const Potential* p, const DualRow* ri, const DualRow* rj, double ai, double aj,
    double excess, double eta) noexcept nogil
