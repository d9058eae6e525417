"""Axes, colours and markers that the displays share."""

from __future__ import annotations

import numpy as np

# Okabe & Ito's colours, which stay apart for every colour vision, in an order that
# also keeps neighbours apart in grey; each class has a marker besides.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
MARKERS = "os^DvP"
GREY, INK = "0.5", "0.1"


def colour(k):
    """Colour of the k-th class or curve."""
    return COLOURS[k % len(COLOURS)]


def marker(k):
    """Marker of the k-th class."""
    return MARKERS[k % len(MARKERS)]


def make_axes(ax, shape, size, **options):
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
    """
    if ax is not None:
        axes = np.array(ax, dtype=object)
        if axes.size != shape[0] * shape[1]:
            raise ValueError(
                f"ax holds {axes.size} Axes, but this picture needs "
                f"{shape[0] * shape[1]}: {shape[0]} rows of {shape[1]}."
            )
        return axes.reshape(shape)
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "drawing needs matplotlib, which is not installed: "
            "pip install 'maxent[plot]'"
        ) from error
    options = {"squeeze": False, "layout": "constrained", "figsize": size, **options}
    return plt.subplots(*shape, **options)[1]
