"""Large blocks of memory that outlive a fit without being held.

Fresh memory is dear: the system clears every page when it is first touched, and a
virtual machine may have to ask its host for it besides. A solver that is called again
and again, in a grid search, would pay that for its kernel matrix each time. So a block
that is given back stays mapped and is marked free: the next fit finds it warm, and the
system takes its pages whenever it wants memory for anything else.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import threading

import numpy as np

_LEAST = 1 << 24  # bytes below which there is nothing to gain
_lock = threading.Lock()
_spare: list[mmap.mmap] = []  # the largest blocks given back, smallest first
_MOST = 2
_lazily = hasattr(mmap, "MADV_FREE") and hasattr(mmap.mmap, "madvise")


def _forget():
    """Leave the blocks of the parent of a forked process alone, and its lock."""
    global _lock
    _lock = threading.Lock()
    _spare.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


class Arena:
    """A float32 matrix on a block of memory that may have served before.

    Entries are finite and otherwise arbitrary: zero in fresh memory, or what an
    earlier holder left.

    Parameters
    ----------
    shape : (int, int)

    Attributes
    ----------
    matrix : ndarray of float32
    """

    def __init__(self, shape):
        size = 4 * int(np.prod(shape, dtype=object))
        self._block = None
        if _lazily and size >= _LEAST:
            self._block = _take(size)
        if self._block is None:
            self.matrix = np.zeros(shape, dtype=np.float32)
        else:
            flat = np.frombuffer(self._block, dtype=np.float32, count=size // 4)
            self.matrix = flat.reshape(shape)

    def give_back(self):
        """Leave the block to the next arena; the matrix must not be used after this.

        Only for matrices whose entries are finite.
        """
        block, self._block, self.matrix = self._block, None, None
        if block is None:
            return
        with contextlib.suppress(OSError):
            block.madvise(mmap.MADV_FREE)
        with _lock:
            _spare.append(block)
            _spare.sort(key=len)
            del _spare[:-_MOST]


def _take(size):
    """A block of at least `size` bytes: the smallest spare one, or a new one."""
    with _lock:
        for k, block in enumerate(_spare):
            if len(block) >= size:
                return _spare.pop(k)
    try:  # private: a forked process must not write into the same memory
        block = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (OSError, ValueError):
        return None
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # a kernel without huge pages
            block.madvise(mmap.MADV_HUGEPAGE)
    return block
