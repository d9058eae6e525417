"""Axes, colours, markers and styles that the displays share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from maxent._support.validation import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    # several Axes in reading order: as plt.subplots returns them, or in a list
    ManyAxes: TypeAlias = Axes | NDArray[Any] | Sequence[Any]

# Okabe & Ito's colours, which stay apart for every colour vision, in an order that
# also keeps neighbours apart in grey; each class has a marker besides.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
MARKERS = "os^DvP"
DASHES = ("-", "--", "-.", ":")
GREY, INK = "0.5", "0.1"


def colour(k: int) -> str:
    """Colour of the k-th class or curve."""
    return COLOURS[k % len(COLOURS)]


def marker(k: int) -> str:
    """Marker of the k-th class."""
    return MARKERS[k % len(MARKERS)]


def dashes(k: int) -> str:
    """Line style of the k-th curve."""
    return DASHES[k % len(DASHES)]


def make_axes(
    ax: ManyAxes | None,
    shape: tuple[int, int],
    size: tuple[float, float],
    **options: Any,
) -> NDArray[Any]:
    """Array of Axes of this shape: those given, or those of a new figure.

    Parameters
    ----------
    ax : None, Axes or array-like of Axes
        As many as asked for, in reading order.
    shape : tuple of int (rows, columns)
    size : tuple of float (width, height)
        Of a new figure, in inches.
    **options
        Passed on to ``matplotlib.pyplot.subplots``.

    Returns
    -------
    ndarray of Axes, of this shape

    Raises
    ------
    ImportError
        Without Matplotlib.
    ValueError
        For anything else than Axes, and for another number of them.
    """
    try:
        import matplotlib.pyplot as plt
        from matplotlib.axes import Axes
    except ImportError as error:
        raise ImportError(
            "drawing needs matplotlib, which is not installed: "
            "pip install 'maxent[plot]'"
        ) from error
    if ax is None:
        options = {"squeeze": False, "layout": "constrained", **options}
        made: NDArray[Any] = plt.subplots(*shape, figsize=size, **options)[1]
        return made
    axes = np.array(ax, dtype=object)
    for one in axes.flat:
        if not isinstance(one, Axes):
            raise ValueError(
                f"ax={shown(ax)} must be Axes, such as those of plt.subplots(), or "
                "None for a new figure."
            )
    if axes.size != shape[0] * shape[1]:
        rows = f"{shape[0]} row{'s' * (shape[0] > 1)}"
        raise ValueError(
            f"ax holds {axes.size} Axes, but this picture needs "
            f"{shape[0] * shape[1]}: {rows} of {shape[1]}."
        )
    return axes.reshape(shape)


def figure_of(ax: Axes) -> Figure:
    """The figure, or part of a figure, that Axes stand in."""
    return cast("Figure", ax.figure)


def line_style(kwargs: dict[str, Any], **defaults: Any) -> dict[str, Any]:
    """Properties of a line: the defaults, and what the caller gives instead.

    Both may use Matplotlib's short names (lw, ls, c).
    """
    from matplotlib.cbook import normalize_kwargs
    from matplotlib.lines import Line2D

    return normalize_kwargs(defaults, Line2D) | normalize_kwargs(kwargs, Line2D)
