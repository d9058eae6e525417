"""Kernel tiles of vector kernels."""

ctypedef fused real:
    float
    double

cdef enum VectorKernel:
    LINEAR = 0
    RBF = 1
    POLYNOMIAL = 2
    SIGMOID = 3

cdef struct KernelSpec:
    int kind
    double gamma
    double coef0
    int degree
    double raw_gamma        # of rows in their own units, where those are given

cdef void kernel_tile(
    const KernelSpec* spec, const real* X, const real* xx, Py_ssize_t rows,
    const real* Z, const real* zz, Py_ssize_t cols, Py_ssize_t d,
    real* out, Py_ssize_t ld, const double* raw_X, const double* raw_Z) noexcept nogil
