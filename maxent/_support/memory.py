"""Size of the machine's memory."""

from __future__ import annotations

import os


def machine_memory() -> float:
    """Bytes of memory of the machine; infinity where the system does not report it."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        return float("inf")
