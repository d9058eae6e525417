"""Outcome of a demonstration."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from maxent._commands.pictures import draw

__all__ = ["Demo"]


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
        if not draw(path, self.paint, self.size):
            return (
                f"{self.text}\nmatplotlib is not installed, so no picture is drawn.\n"
            ), None
        return f"{self.text}\nPicture written to {path}\n", path
