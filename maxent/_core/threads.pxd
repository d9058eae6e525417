# Threads for a loop of so many tasks and so many ns on one thread: one where there is
# too little to do to be worth waiting for the others to start and to end.
cdef int team(int n_threads, Py_ssize_t tasks, double ns) noexcept nogil
