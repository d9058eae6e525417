"""A learnt motif as a logo, and where sequences have it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from maxent._support import validation as v
from maxent.displays._axes import GREY, INK, colour, make_axes
from maxent.displays._estimators import check_fitted_one, refusal
from maxent.displays._layout import fit_column

if TYPE_CHECKING:
    from maxent.displays._axes import ManyAxes

# as in sequence logos: A green, C blue, G orange, T and U red
_BASES = {"A": 2, "C": 0, "G": 1, "T": 5, "U": 5}
_LEAST = 0.01  # of the tallest stack: lower letters are not drawn


class MotifLogoDisplay:
    """Weights of a motif as a logo: letters as high as their weights.

    Letters that speak for the motif stand above the line, the heaviest on top, and
    those against it hang below. The mean weight of each position is taken off: it
    counts alike for all letters. A second panel shows where sequences have the motif.

    Parameters
    ----------
    weights : array-like (width, n_letters)
        Weight of each letter at each position, in units of the score.
    alphabet : str, default="ACGT"
        Letters, as many as columns.
    positions : array-like (n_places,) or (2, n_places), optional
        Mean posterior probability of each first place of the motif; a second row is
        that of the reverse complement, drawn below the line.

    Attributes
    ----------
    ax_ : ndarray of Axes (1,) or (2,)
        Of the logo and of the places.
    figure_ : Figure
    letters_ : list of PathPatch
        Letters that are drawn.
    bars_ : list of BarContainer
        Places, one container for each strand.

    Raises
    ------
    ValueError
        For weights of another shape than the alphabet and places that are not
        probabilities.

    See Also
    --------
    maxent.minentropy.M3EMotifClassifier : Learns motifs.
    HiddenPositionDisplay : Windows of images.

    References
    ----------
    Schneider & Stephens (1990), Sequence logos: a new way to display consensus
    sequences.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.displays import MotifLogoDisplay
    >>> from maxent.minentropy import M3EMotifClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = ["".join(rng.choice(list("ACGT"), 20)) for _ in range(60)]
    >>> X = [x[:7] + "TATAAT" + x[13:] if i % 2 else x for i, x in enumerate(X)]
    >>> y = np.arange(60) % 2
    >>> model = M3EMotifClassifier(6, alpha=2.0, C=50.0, random_state=0).fit(X, y)
    >>> display = MotifLogoDisplay.from_estimator(model, X, y)
    >>> display.consensus, int(display.positions[0].argmax())
    ('TATAAT', 7)
    """

    def __init__(
        self,
        weights: ArrayLike,
        alphabet: str = "ACGT",
        *,
        positions: ArrayLike | None = None,
    ) -> None:
        weights = v.as_doubles("weights", weights)
        if weights.ndim != 2 or not len(weights) or not np.isfinite(weights).all():
            raise ValueError(
                f"weights has shape {weights.shape}; finite weights (width, "
                "n_letters) are needed."
            )
        if not isinstance(alphabet, str) or len(alphabet) != weights.shape[1]:
            raise ValueError(
                f"alphabet={v.shown(alphabet)} must be a str of {weights.shape[1]} "
                "letters, one for each column of weights."
            )
        self.weights = weights - weights.mean(axis=1, keepdims=True)
        self.alphabet = alphabet
        self.positions = None
        if positions is not None:
            self.positions = _checked_positions(positions)

    @property
    def consensus(self) -> str:
        """The heaviest letter of every position."""
        return "".join(self.alphabet[k] for k in self.weights.argmax(axis=1))

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: ArrayLike | None = None,
        *,
        ax: ManyAxes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the motif of a fitted estimator, and where sequences have it.

        Parameters
        ----------
        estimator : M3EMotifClassifier
            Fitted.
        X : list of str, list of array-like of int, or path, optional
            Sequences whose places are shown.
        y : array-like (n,), optional
            Labels: places are those of sequences of ``pos_label_``. Those of the
            predicted ones by default.
        ax : Axes or sequence of two Axes, optional
            For the logo and, with X, for the places; None makes a figure.
        **kwargs
            Properties of the letters, as for ``PathPatch``.

        Returns
        -------
        display : MotifLogoDisplay

        Raises
        ------
        ValueError
            For another estimator, one that is not fitted, and X without a sequence of
            ``pos_label_``.
        """
        from maxent.minentropy import M3EMotifClassifier

        check_fitted_one(estimator)
        if not isinstance(estimator, M3EMotifClassifier):
            raise refusal(estimator, "a fitted M3EMotifClassifier.")
        positions = None if X is None else _mean_places(estimator, X, y)
        display = cls(estimator.motif_, estimator.alphabet, positions=positions)
        return display.plot(ax, **kwargs)

    def plot(self, ax: ManyAxes | None = None, **kwargs: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : Axes or sequence of two Axes, optional
            For the logo and, if there are any, for the places; None makes a figure.
        **kwargs
            Properties of the letters, as for ``PathPatch``.

        Returns
        -------
        self
        """
        panels = 1 if self.positions is None else 2
        size = (max(4.2, 0.5 * len(self.weights) + 1.5), 1.2 + 1.5 * panels)
        self.ax_ = make_axes(ax, (panels, 1), size)[:, 0]
        self.figure_ = self.ax_[0].figure
        self._draw_letters(self.ax_[0], kwargs)
        self.bars_ = [] if self.positions is None else self._draw_places(self.ax_[1])
        fit_column(list(self.ax_))
        return self

    def _draw_letters(self, ax, kwargs):
        self.letters_ = []
        up = np.maximum(self.weights, 0.0).sum(axis=1).max()
        down = np.minimum(self.weights, 0.0).sum(axis=1).min()
        tallest = max(up, -down, 1e-300)
        for j, row in enumerate(self.weights):
            for sign in (1.0, -1.0):
                end = 0.0
                for k in np.argsort(np.abs(row), kind="stable"):
                    if sign * row[k] > _LEAST * tallest:
                        low = min(end, end + row[k])
                        self._draw_letter(ax, k, j, low, abs(row[k]), kwargs)
                        end += row[k]
        ax.axhline(0.0, color=INK, lw=0.8)
        limits = (1.05 * down, 1.05 * up) if up > down else (-1.0, 1.0)
        ax.set(xlim=(-0.5, len(self.weights) - 0.5), ylim=limits)
        step = max(1, len(self.weights) // 12)
        at = np.arange(0, len(self.weights), step)
        ax.set_xticks(at, [str(j + 1) for j in at])
        ax.set(xlabel="position in the motif", ylabel="weight")

    def _draw_letter(self, ax, k, j, low, height, kwargs):
        """One letter in the box [j - 0.45, j + 0.45] x [low, low + height]."""
        from matplotlib.font_manager import FontProperties
        from matplotlib.patches import PathPatch
        from matplotlib.textpath import TextPath
        from matplotlib.transforms import Affine2D

        letter = self.alphabet[k]
        font = FontProperties(family="DejaVu Sans", weight="bold")
        path = TextPath((0, 0), letter.replace("$", r"\$"), size=1.0, prop=font)
        box = path.get_extents()
        # an I is not made as wide as an M
        wide = max(box.width, 0.5)
        place = Affine2D().translate(-box.x0 - 0.5 * box.width, -box.y0)
        place.scale(0.9 / wide, height / max(box.height, 1e-9)).translate(j, low)
        style = {"facecolor": colour(_BASES.get(letter.upper(), k)), "lw": 0, **kwargs}
        patch = PathPatch(path.transformed(place), **style)
        self.letters_.append(ax.add_patch(patch))

    def _draw_places(self, ax):
        first = np.arange(self.positions.shape[1])
        names = ["sequence as read", "reverse complement"]
        bars = [
            ax.bar(first, sign * row, width=0.9, color=colour(k), label=names[k])
            for k, (row, sign) in enumerate(zip(self.positions, (1, -1), strict=False))
        ]
        if len(bars) == 2:
            from matplotlib.ticker import FuncFormatter

            ax.axhline(0.0, color=GREY, lw=0.8)
            # of the second strand, below the line: probabilities too
            ax.yaxis.set_major_formatter(FuncFormatter(lambda p, _: f"{abs(p):g}"))
            above = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": 2}
            ax.legend(fontsize="small", frameon=False, **above)
        ax.set(xlabel="first place of the motif", ylabel="mean probability")
        ax.set_xlim(-0.7, len(first) - 0.3)
        return bars


def _checked_positions(positions):
    table = np.atleast_2d(v.as_doubles("positions", positions))
    if table.ndim != 2 or len(table) > 2 or not table.size:
        raise ValueError(
            f"positions has shape {table.shape}; (n_places,), or (2, n_places) for two "
            "strands, is needed."
        )
    if not (table >= 0).all() or abs(table.sum() - 1.0) > 1e-6:
        raise ValueError(
            f"positions sums to {table.sum():g}; mean probabilities of all places are "
            ">= 0 and sum to 1."
        )
    return table


def _mean_places(estimator, X, y):
    """Mean posterior of the places (strands, places) in sequences with the motif."""
    given = estimator.predict(X) if y is None else v.as_array("y", y)
    label = estimator.pos_label_
    has = np.flatnonzero(given == label)
    if not len(has):
        raise ValueError(
            f"X has no sequence of class {label!r}, the one with the motif; "
            "give some, or leave X out."
        )
    proba = estimator.hidden_proba(X, np.full(len(given), label))
    strands = 2 if estimator.both_strands else 1
    rows = [proba[i].reshape(strands, -1) for i in has]
    out = np.zeros((strands, max(row.shape[1] for row in rows)))
    for row in rows:
        if strands == 2:  # places of the other strand, as read from this one's start
            row = np.stack([row[0], row[1, ::-1]])
        out[:, : row.shape[1]] += row
    return out / len(rows)
