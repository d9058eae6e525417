"""The kernel dual by sequential minimal optimisation, callable without the GIL.

    cdef DualMachine machine
    if dual_open(&machine, &prior, K, ld, n, a, residual, level, rate, weight, sides):
        ...                                     # out of memory
    while dual_run(&machine, 1e-3, 100000) == DUAL_RUNNING:
        ...                                     # check for signals
    dual_read(&machine, residual)
    dual_close(&machine)
"""

from maxent._core.machines.dual_machine cimport DualMachine

cdef int dual_run(DualMachine* machine, double tol, Py_ssize_t steps) noexcept nogil
