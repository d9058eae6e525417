"""Whose line a warning names."""

from __future__ import annotations

import os
import sys

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def user_stacklevel():
    """`stacklevel` at which ``warnings.warn``, called here, names a user's line.

    That is the first line outside this package, however many of its functions and
    decorators are between.
    """
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and _is_inside(frame.f_code.co_filename):
        frame, level = frame.f_back, level + 1
    return level


def _is_inside(filename):
    """True if code is of this package, or of one that calls it back."""
    return filename.startswith(_PACKAGE) or f"{os.sep}joblib{os.sep}" in filename
