"""What the demonstrations share: a figure written whole, and aligned tables."""

import os

from maxent._support.files import whole_file

__all__ = ["draw", "table", "told"]


def draw(path, paint, size=(10.0, 4.2)):
    """Let `paint` draw on a new figure, and write it.

    Parameters
    ----------
    path : str or None
        File to write, whole or not at all; None draws nothing.
    paint : callable(figure)
    size : tuple of float
        In inches.

    Returns
    -------
    path : str or None
        The file written; None without one, or without matplotlib.
    """
    if path is None:
        return None
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        return None
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    paint(figure)
    with whole_file(path) as stream:
        figure.savefig(stream, format=os.path.splitext(path)[1][1:].lower(), dpi=150)
    return path


def told(text, asked, written):
    """The report with what became of the picture."""
    if asked is None:
        return text
    if written is None:
        return f"{text}\nmatplotlib is not installed, so no picture is drawn.\n"
    return f"{text}\nPicture written to {written}\n"


def table(rows):
    """Rows, dicts with the same keys, as text: names to the left, numbers right."""
    columns = list(rows[0])
    cells = [columns] + [[str(row[name]) for name in columns] for row in rows]
    widths = [max(len(row[j]) for row in cells) for j in range(len(columns))]
    return "".join(
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])])
        + "\n"
        for row in cells
    )
