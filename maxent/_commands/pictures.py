"""Pictures that commands write, whole or not at all."""

import os

from maxent._commands.outcome import CommandError, check_output
from maxent._support.files import whole_file

__all__ = ["check_picture", "draw"]


def check_picture(flag, path, *inputs):
    """Refuse before the work a picture that could not be written."""
    if os.path.splitext(path)[1].lower() not in (".png", ".pdf", ".svg"):
        raise CommandError(f"{flag} {path}: name a .png, .pdf or .svg file")
    check_output(path, *inputs)


def draw(path, paint, size):
    """Draw a picture; False where matplotlib is not installed.

    Parameters
    ----------
    path : str
    paint : callable(figure)
    size : tuple of float
        In inches.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        return False
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    paint(figure)
    with whole_file(path) as stream:
        figure.savefig(stream, format=os.path.splitext(path)[1][1:].lower(), dpi=150)
    return True
