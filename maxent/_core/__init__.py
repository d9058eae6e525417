"""Compiled kernels: arrays in, arrays out. No policy, no defaults, no warnings.

One exception, because OpenMP reads it when it is loaded: how long waiting threads spin
before they sleep. By default it is milliseconds, which takes a processor from the
thread that is waited for where others are busy, and two threads then take several
times as long as one. What the user has set stays.
"""

import os

_SPINS = "10000"  # tries; enough between two loops that follow each other at once

if not any(name in os.environ for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")):
    os.environ["GOMP_SPINCOUNT"] = _SPINS
    try:
        from maxent._core import threads  # loads OpenMP
    finally:
        del os.environ["GOMP_SPINCOUNT"]
    del threads
del os
