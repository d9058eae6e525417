"""A sequence with the posterior probabilities of its hidden states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from maxent._support import validation as v
from maxent.displays._axes import INK, colour, make_axes
from maxent.displays._layout import fit_column

if TYPE_CHECKING:
    from maxent.displays._axes import ManyAxes

_LETTER = 6.0  # points; letters that are closer would run into one another


class StatePathDisplay:
    """Posterior probabilities of the states along a sequence, stacked to one.

    Above the bands the symbols or the values of the sequence, and as a line at the edge
    of the bands the most likely path, which need not follow the widest band.

    Parameters
    ----------
    posterior : array-like (n_steps, n_states)
        Rows sum to one.
    path : array-like of int (n_steps,), optional
        A state for every step.
    sequence : str or array-like (n_steps,) or (n_steps, d), optional
        What was observed.
    state_names : sequence of str (n_states,), optional
        None numbers the states from 0.

    Attributes
    ----------
    ax_ : ndarray of Axes (2,)
        Of the sequence and of the states.
    figure_ : Figure
    bands_ : list
        One band for every state.
    path_line_ : list
        The pieces of the path; empty without one.
    legend_ : Legend

    Raises
    ------
    ValueError
        For probabilities that do not sum to one, other lengths, and states that do not
        exist.

    See Also
    --------
    maxent.models.CategoricalHMM : ``posterior`` and ``viterbi``.

    Examples
    --------
    >>> from maxent.displays import StatePathDisplay
    >>> from maxent.models import CategoricalHMM
    >>> model = CategoricalHMM(
    ...     [0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], [[0.8, 0.2], [0.2, 0.8]], "AC"
    ... )
    >>> display = StatePathDisplay.from_model(model, "AAAACCCC")
    >>> display.path
    array([0, 0, 0, 0, 1, 1, 1, 1])
    """

    def __init__(
        self,
        posterior: ArrayLike,
        *,
        path: ArrayLike | None = None,
        sequence: Any = None,
        state_names: Any = None,
    ) -> None:
        table = v.as_doubles("posterior", posterior)
        if table.ndim != 2 or not table.size:
            raise ValueError(
                f"posterior has shape {table.shape}; (n_steps, n_states) is expected."
            )
        total = table.sum(axis=1)
        if not (table >= 0).all() or np.abs(total - 1.0).max() > 1e-6:
            worst = int(np.argmax(np.abs(total - 1.0)))
            raise ValueError(
                f"posterior[{worst}] sums to {total[worst]:g}; its rows must be "
                "probabilities that sum to 1."
            )
        n, S = table.shape
        names = [str(k) for k in range(S)] if state_names is None else list(state_names)
        if len(names) != S:
            raise ValueError(f"state_names has {len(names)} names for {S} states.")
        self.posterior, self.state_names = table, names
        self.path = None if path is None else _checked_path(path, n, S)
        self.sequence = sequence
        if sequence is not None and len(sequence) != n:
            raise ValueError(
                f"sequence has {len(sequence)} steps but posterior has {n} rows."
            )

    @classmethod
    def from_model(
        cls,
        model: Any,
        sequence: Any,
        *,
        viterbi: bool = True,
        state_names: Any = None,
        ax: ManyAxes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw posterior and most likely path of one sequence under a model.

        Parameters
        ----------
        model : CategoricalHMM or GaussianHMM
        sequence : str, array-like (n_steps,) or (n_steps, d)
            One sequence.
        viterbi : bool, default=True
            Draw the most likely path.
        state_names : sequence of str (n_states,), optional
            None numbers the states from 0.
        ax : sequence of two Axes, optional
            For the sequence and for the states; None makes a figure.
        **kwargs
            Properties of the bands, as for ``Axes.stairs``.

        Returns
        -------
        display : StatePathDisplay
        """
        for name in ("posterior", "viterbi"):
            if not hasattr(model, name):
                raise TypeError(
                    f"model={v.shown(model)} has no method {name}; a hidden Markov "
                    "model is needed."
                )
        path = model.viterbi([sequence])[0][0] if viterbi else None
        display = cls(
            model.posterior([sequence])[0],
            path=path,
            sequence=sequence,
            state_names=state_names,
        )
        return display.plot(ax, **kwargs)

    def plot(self, ax: ManyAxes | None = None, **kwargs: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : sequence of two Axes, optional
            For the sequence and for the states; None makes a figure.
        **kwargs
            Properties of the bands, as for ``Axes.stairs``.

        Returns
        -------
        self
        """
        self.ax_ = make_axes(ax, (2, 1), (8.0, 3.2), height_ratios=[1, 2], sharex=True)[
            :, 0
        ]
        above, below = self.ax_
        self.figure_ = below.figure
        n, S = self.posterior.shape
        edges = np.arange(n + 1) - 0.5
        top = np.concatenate([np.zeros((n, 1)), np.cumsum(self.posterior, 1)], axis=1)
        self.bands_ = [
            below.stairs(
                np.minimum(top[:, k + 1], 1.0),
                edges,
                baseline=top[:, k],
                **{
                    "fill": True,
                    "color": colour(k),
                    "alpha": 0.35 + 0.5 / (1 + k // 6),
                    "label": self.state_names[k],
                    **kwargs,
                },
            )
            for k in range(S)
        ]
        self.path_line_ = self._draw_path(below)
        below.set(xlim=(-0.5, n - 0.5), ylim=(0, 1.06 if self.path_line_ else 1))
        below.set(xlabel="step", ylabel="probability of the state")
        self.legend_ = below.legend(
            title="state", loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False
        )
        self._draw_sequence(above)
        fit_column([above, below])
        return self

    def _draw_path(self, ax):
        """One bar above the bands for every run of one state."""
        if self.path is None:
            return []
        ends = np.flatnonzero(np.diff(self.path)) + 1
        first = np.concatenate([[0], ends])
        last = np.concatenate([ends, [len(self.path)]])
        return [
            ax.plot(
                [a - 0.5, b - 0.5],
                [1.03] * 2,
                color=colour(k),
                lw=5,
                solid_capstyle="butt",
            )[0]
            for a, b, k in zip(first, last, self.path[first])
        ]

    def _draw_sequence(self, ax):
        """Letters, or lines of codes or values."""
        n = len(self.posterior)
        if self.sequence is None:
            ax.axis("off")
            return
        if isinstance(self.sequence, str):
            letters = sorted(set(self.sequence))
            values = np.array([letters.index(a) for a in self.sequence])[:, None]
            ax.set_yticks(range(len(letters)), letters)
            ax.set(ylim=(-0.6, len(letters) - 0.4))
            if n * _LETTER <= ax.bbox.width * 72 / ax.figure.dpi:
                self._draw_letters(ax, letters, values[:, 0])
                return
        else:
            values = v.as_doubles("sequence", self.sequence).reshape(n, -1)
        for k, column in enumerate(values.T):
            ax.plot(
                column,
                color=INK,
                lw=0.8,
                alpha=1.0 / (1 + 0.5 * k),
                drawstyle="steps-mid",
            )
        ax.set(ylabel="observed")

    def _draw_letters(self, ax, letters, level):
        """Every letter at its own height."""
        for k, letter in enumerate(letters):
            at = np.flatnonzero(level == k)
            plain = (
                letter.isascii() and letter.isalnum()
            )  # others mean something in TeX
            marker = f"${letter}$" if plain else "s"
            ax.plot(at, level[at], ls="", marker=marker, color=INK, mew=0.3)


def _checked_path(path, n, S):
    path = np.asarray(path)
    if path.shape != (n,) or path.dtype.kind not in "iu":
        raise ValueError(
            f"path has shape {path.shape} and dtype {path.dtype}; {n} integers are "
            "expected."
        )
    if path.min() < 0 or path.max() >= S:
        raise ValueError(
            f"path has the state {path.max() if path.min() >= 0 else path.min()}; "
            f"states are 0 to {S - 1}."
        )
    return path
