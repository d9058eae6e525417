"""What the demonstrations share: their outcome, and aligned tables."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from maxent._support.files import whole_file

__all__ = ["Demo", "table"]


@dataclass(frozen=True)
class Demo:
    """Outcome of a demonstration.

    Attributes
    ----------
    text : str
        What to print: a table, and how to read it.
    converged : bool
        Whether every fit reached its tolerance.
    paint : callable(figure)
        Draws the picture.
    size : tuple of float
        Of the picture, in inches.
    """

    text: str
    converged: bool
    paint: Callable[[Any], None]
    size: tuple[float, float] = (10.0, 4.2)

    def drawn(self, path):
        """The report, and the file of the picture or None.

        Parameters
        ----------
        path : str or None
            File to write, whole or not at all; None draws nothing.
        """
        if path is None:
            return self.text, None
        try:
            from matplotlib.backends.backend_agg import FigureCanvasAgg
            from matplotlib.figure import Figure
        except ImportError:
            return (
                f"{self.text}\nmatplotlib is not installed, so no picture is drawn.\n"
            ), None
        figure = Figure(figsize=self.size, layout="constrained")
        FigureCanvasAgg(figure)
        self.paint(figure)
        with whole_file(path) as stream:
            figure.savefig(
                stream, format=os.path.splitext(path)[1][1:].lower(), dpi=150
            )
        return f"{self.text}\nPicture written to {path}\n", path


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
