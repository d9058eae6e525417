"""Room for legends, names and labels inside the part of the figure that Axes have.

Figures with a layout engine make room themselves. In others, as ``plt.subplots()``
makes them, the Axes are made smaller until nothing of the picture reaches beyond the
middle of the gaps to their neighbours, or beyond the figure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from maxent.displays._axes import figure_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.gridspec import SubplotSpec
    from matplotlib.legend import Legend
    from matplotlib.transforms import Bbox, Transform

_GAP = 6.0  # between a picture and its legend, in points
_PAD = 3.0  # between a picture and the end of its part of the figure, in points
_LEAST = 0.2  # share of their width and height that Axes keep at least
_ROUNDS = 12  # centred squares halve what is missing each time
_WIDE = 1.2  # width / height from which a legend stands at the right of the Axes
_STYLE = {"frameon": False, "fontsize": "small", "borderaxespad": 0.0}


def has_layout_engine(ax: Axes) -> bool:
    """True if the figure makes room by itself when it is drawn."""
    from matplotlib.layout_engine import PlaceHolderLayoutEngine

    engine = ax.figure.get_layout_engine()
    return engine is not None and not isinstance(engine, PlaceHolderLayoutEngine)


def is_constrained(ax: Axes) -> bool:
    """True if the figure has a constrained layout, which knows scales and legends."""
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    return isinstance(ax.figure.get_layout_engine(), ConstrainedLayoutEngine)


def next_to(ax: Axes, side: str, gap: float = _GAP) -> Transform:
    """Coordinates of the Axes, moved past all that stands out of them at a side.

    Parameters
    ----------
    ax : Axes
    side : {"right", "below", "above"}
    gap : float, default=6.0
        Points in between.
    """
    from matplotlib.transforms import ScaledTranslation

    outer, inner, dpi = ax.get_tightbbox(), ax.bbox, ax.figure.dpi
    assert outer is not None
    if side == "right":
        shift = ((outer.x1 - inner.x1) / dpi + gap / 72, 0.0)
    elif side == "below":
        shift = (0.0, (outer.y0 - inner.y0) / dpi - gap / 72)
    else:
        shift = (0.0, (outer.y1 - inner.y1) / dpi + gap / 72)
    return ax.transAxes + ScaledTranslation(*shift, ax.figure.dpi_scale_trans)


def legend_outside(ax: Axes, handles: Sequence[Artist], **options: Any) -> Legend:
    """Legend at the right of wide Axes and below others, in columns that fit."""
    options = _STYLE | {"handles": list(handles)} | options
    box = ax.get_position(original=True)
    width, height = np.multiply(box.size, ax.figure.bbox.size)
    if width > _WIDE * height:
        return ax.legend(
            loc="upper left",
            bbox_to_anchor=(1.0, 1.0),
            bbox_transform=next_to(ax, "right"),
            **options,
        )
    place = next_to(ax, "below")
    room = part_of_figure(ax).width * ax.figure.bbox.width - 2 * _points(ax, _PAD)
    columns = min(len(handles), 4)
    while True:
        legend = ax.legend(
            loc="upper center",
            bbox_to_anchor=(0.5, 0.0),
            bbox_transform=place,
            ncols=columns,
            columnspacing=1.2,
            **options,
        )
        if columns <= 1 or legend.get_window_extent().width <= room:
            return legend
        columns -= 1


def legend_above(
    panels: Sequence[Axes], handles: Sequence[Artist]
) -> tuple[Legend, list[float]]:
    """One legend above several Axes, and the height that it takes from each.

    Heights are shares of the figure, for :func:`fit_alike`.
    """
    figure, none = figure_of(panels[0]), [0.0] * len(panels)
    style: dict[str, Any] = {**_STYLE, "handles": list(handles)}
    if is_constrained(panels[0]):
        style["ncols"] = len(handles)
        return figure.legend(loc="outside upper center", **style), none
    if has_layout_engine(panels[0]):  # a tight layout has no place above the panels
        return legend_outside(panels[-1], handles), none
    parts = [part_of_figure(ax) for ax in panels]
    left, right = min(p.x0 for p in parts), max(p.x1 for p in parts)
    top = max(p.y1 for p in parts)
    size, pad = figure.bbox.size, _points(panels[0], _PAD)
    columns = len(handles)
    while True:
        legend = figure.legend(
            loc="upper center",
            bbox_to_anchor=(0.5 * (left + right), top - pad / size[1]),
            ncols=columns,
            **style,
        )
        extent = legend.get_window_extent()
        if columns <= 1 or extent.width <= (right - left) * size[0]:
            break
        legend.remove()
        columns -= 1
    room = (extent.height + pad) / size[1]
    return legend, [room if part.y1 > top - 1e-6 else 0.0 for part in parts]


def fit(ax: Axes, *, top: float = 0.0) -> None:
    """Make Axes smaller until all of their picture is in their part of the figure.

    Parameters
    ----------
    ax : Axes
    top : float, default=0.0
        Share of the figure's height to leave free at the top of that part.
    """
    if has_layout_engine(ax):
        return
    part, given = part_of_figure(ax), _given_place(ax)
    size, pad = np.array(ax.figure.bbox.size), _points(ax, _PAD)
    low = np.array(part.min) * size + ax.figure.bbox.min + pad
    high = (np.array(part.max) - (0.0, top)) * size + ax.figure.bbox.min - pad
    start, end = np.array(given.min), np.array(given.max)
    least = _LEAST * (end - start)
    for _ in range(_ROUNDS):
        _move(ax, (*start, *(end - start)))
        outer = ax.get_tightbbox()
        assert outer is not None
        before, after = (low - outer.min).clip(0.0), (outer.max - high).clip(0.0)
        if max(before.max(), after.max()) < 0.5:  # pixels
            return
        new = start + before / size, end - after / size
        if (new[1] - new[0] < least).any():
            return  # figures that are too small for the picture
        start, end = new


def fit_alike(panels: Sequence[Axes], tops: Sequence[float] | None = None) -> None:
    """Fit several Axes, and give all of them the size of the smallest."""
    for k, ax in enumerate(panels):
        fit(ax, top=0.0 if tops is None else tops[k])
    if has_layout_engine(panels[0]):
        return
    boxes = [ax.get_position(original=True) for ax in panels]
    width, height = min(b.width for b in boxes), min(b.height for b in boxes)
    for ax, box in zip(panels, boxes, strict=True):
        # labels stand at the left and below, titles above
        _move(ax, (box.x1 - width, box.y0, width, height))


def fit_column(panels: Sequence[Axes]) -> None:
    """Fit several Axes; those above one another keep their common ends."""
    given = [_given_place(ax) for ax in panels]
    for ax in panels:
        fit(ax)
    stacked = all((b.x0, b.x1) == (given[0].x0, given[0].x1) for b in given)
    if has_layout_engine(panels[0]) or not stacked:
        return
    boxes = [ax.get_position(original=True) for ax in panels]
    left, right = max(b.x0 for b in boxes), min(b.x1 for b in boxes)
    for ax, box in zip(panels, boxes, strict=True):
        _move(ax, (left, box.y0, right - left, box.height))


def clear_offset(ax: Axes) -> None:
    """Move the label of the x axis below the number that its ticks leave out."""
    ax.get_tightbbox()  # so that the ticks are known
    offset = ax.xaxis.get_offset_text()
    if offset.get_text():
        height = offset.get_window_extent().height * 72 / ax.figure.dpi
        ax.xaxis.labelpad += height


# Axes that were moved inside the place that a grid of the figure gives them, and that
# place: layouts that come later, as tight_layout(), move the place and them with it.
_given: WeakKeyDictionary[Axes, tuple[SubplotSpec, SubplotSpec]] = WeakKeyDictionary()


def _grid_place(ax: Axes) -> SubplotSpec | None:
    """Place in a grid of the figure, before the Axes were fitted."""
    now = ax.get_subplotspec()
    given, inner = _given.get(ax, (now, now))
    return given if inner is now else now


def _move(ax: Axes, bounds: tuple[float, float, float, float]) -> None:
    spec = _grid_place(ax)
    if spec is None:
        ax.set_position(bounds)
        ax.set_in_layout(True)
        return
    box = spec.get_position(figure_of(ax))
    x, y, width, height = bounds
    # shares at the left, of the Axes and at the right; at the top, of them, and below
    columns = [x - box.x0, width, box.x1 - x - width]
    rows = [box.y1 - y - height, height, y - box.y0]
    grid = spec.subgridspec(
        3, 3, wspace=0, hspace=0, width_ratios=columns, height_ratios=rows
    )
    inner = grid[1, 1]
    ax.set_subplotspec(inner)
    _given[ax] = spec, inner


def part_of_figure(ax: Axes) -> Bbox:
    """Region that the picture of the Axes may fill, in shares of the figure.

    Up to the middle of the gap to the next Axes on each side, or the figure's end.
    """
    from matplotlib.transforms import Bbox

    own = _given_place(ax)
    low, high = [0.0, 0.0], [1.0, 1.0]
    for other in ax.figure.axes:
        if other is ax:
            continue
        box = _given_place(other)
        for k in (0, 1):
            beside = box.min[1 - k] < own.max[1 - k] and own.min[1 - k] < box.max[1 - k]
            if beside and box.max[k] <= own.min[k]:
                low[k] = max(low[k], 0.5 * (box.max[k] + own.min[k]))
            if beside and box.min[k] >= own.max[k]:
                high[k] = min(high[k], 0.5 * (box.min[k] + own.max[k]))
    return Bbox([low, high])


def _given_place(ax: Axes) -> Bbox:
    """Box of the Axes before they were fitted."""
    spec = _grid_place(ax)
    if spec is None:
        return ax.get_position(original=True)
    return spec.get_position(figure_of(ax))


def _points(ax: Axes, points: float) -> float:
    """Pixels of so many points."""
    return points * ax.figure.dpi / 72
