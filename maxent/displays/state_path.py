"""A sequence with the posterior probabilities of its hidden states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxent._support import validation as v
from maxent.displays._axes import INK, colour, make_axes
from maxent.displays._layout import fit_column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from maxent.displays._axes import ManyAxes

_LETTER = 6.0  # points; letters that are closer would run into one another


class StatePathDisplay:
    """Posterior probabilities of the states along a sequence, stacked to one.

    Above the bands the symbols or the values of the sequence, and as a line at the edge
    of the bands the most likely path, which need not follow the widest band. Several
    chains of states stand below one another.

    Parameters
    ----------
    posterior : array-like (n_steps, n_states), or list of such
        Rows sum to one. A list has the states of several chains.
    path : array-like of int (n_steps,) or (n_steps, n_chains), optional
        A state for every step, of every chain.
    sequence : str or array-like (n_steps,) or (n_steps, d), optional
        What was observed. It may have one step more than `posterior`: the first then
        has no state, as with regimes, which belong to the steps between two states.
    state_names : sequence of str (n_states,), or list of such, optional
        None numbers the states from 0. Of several chains a list with the names of each.

    Attributes
    ----------
    ax_ : ndarray of Axes (1 + n_chains,)
        Of the sequence and of the states of every chain.
    figure_ : Figure
    bands_ : list
        One band for every state, of one chain after the other.
    path_line_ : list
        The pieces of the paths; empty without one.
    legend_ : Legend, or list of Legend
        A list of several chains.

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
        posterior: ArrayLike | Sequence[ArrayLike],
        *,
        path: ArrayLike | None = None,
        sequence: Any = None,
        state_names: Any = None,
    ) -> None:
        self.posterior: Any
        self.state_names: Any
        self.path: Any
        several = isinstance(posterior, (list, tuple)) and any(
            np.ndim(table) == 2 for table in posterior
        )
        if several:
            self._chains = _several_chains(posterior, path, state_names)
            self.posterior = [chain.posterior for chain in self._chains]
            self.state_names = [chain.names for chain in self._chains]
            self.path = None if path is None else np.asarray(path)
        else:
            self._chains = [_chain("", posterior, path, state_names)]
            self.posterior = self._chains[0].posterior
            self.state_names = self._chains[0].names
            self.path = self._chains[0].path
        n = len(self._chains[0].posterior)
        self.sequence, self._first = sequence, 0
        if sequence is not None:
            self._first = len(sequence) - n
            if self._first not in (0, 1):
                raise ValueError(
                    f"sequence has {len(sequence)} steps but posterior has {n} rows; "
                    f"{n} steps are needed, or {n + 1} of which the first has no state."
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
        model : CategoricalHMM, GaussianHMM, SwitchingLDS or FactorialHMM
            Of the last two posteriors are variational: see their methods. Regimes of a
            switching system begin with the second step; the chains of a factorial
            model stand below one another.
        sequence : str, array-like (n_steps,) or (n_steps, d)
            One sequence.
        viterbi : bool, default=True
            Draw the most likely path, as the model's ``viterbi`` finds it.
        state_names : sequence of str (n_states,), or list of such, optional
            None numbers the states from 0.
        ax : sequence of Axes (1 + n_chains,), optional
            For the sequence and for the states; None makes a figure.
        **kwargs
            Properties of the bands, as for ``Axes.stairs``.

        Returns
        -------
        display : StatePathDisplay

        Raises
        ------
        TypeError
            For a model without the methods ``posterior`` and ``viterbi`` by steps.
        ValueError
            For a sequence of one step under a switching system, which has no regime.
        """
        for name in ("posterior", "viterbi"):
            if not hasattr(model, name):
                raise TypeError(
                    f"model={v.shown(model)} has no method {name}; a hidden Markov "
                    "model, a switching system or a factorial model is needed."
                )
        path = model.viterbi([sequence])[0][0] if viterbi else None
        posterior = model.posterior([sequence])[0]
        posterior = getattr(posterior, "regimes", posterior)
        if not len(posterior):
            raise ValueError(
                "sequence has one step, and a switching system no regime before the "
                "second; pass a longer one."
            )
        display = cls(
            posterior,
            path=path,
            sequence=sequence,
            state_names=state_names,
        )
        return display.plot(ax, **kwargs)

    def plot(self, ax: ManyAxes | None = None, **kwargs: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : sequence of Axes (1 + n_chains,), optional
            For the sequence and for the states; None makes a figure.
        **kwargs
            Properties of the bands, as for ``Axes.stairs``.

        Returns
        -------
        self
        """
        C = len(self._chains)
        heights, tall = [1] + [2] * C, 3.2 if C == 1 else 1.2 + 1.6 * C
        self.ax_ = make_axes(
            ax, (1 + C, 1), (8.0, tall), height_ratios=heights, sharex=True
        )[:, 0]
        self.figure_ = self.ax_[-1].figure
        self.bands_, self.path_line_, legends = [], [], []
        for c, (below, chain) in enumerate(zip(self.ax_[1:], self._chains)):
            self.bands_ += self._draw_bands(below, chain, kwargs)
            pieces = self._draw_path(below, chain.path)
            self.path_line_ += pieces
            end = self._first + len(chain.posterior) - 0.5
            below.set(xlim=(-0.5, end), ylim=(0, 1.06 if pieces else 1))
            below.set(ylabel="probability" + " of the state" * (C == 1))
            legends.append(
                below.legend(
                    title="state" if C == 1 else f"chain {c}",
                    loc="center left",
                    bbox_to_anchor=(1.0, 0.5),
                    frameon=False,
                )
            )
        self.ax_[-1].set(xlabel="step")
        self.legend_ = legends[0] if C == 1 else legends
        self._draw_sequence(self.ax_[0])
        fit_column(list(self.ax_))
        return self

    def _draw_bands(self, ax, chain, kwargs):
        """One band for every state of a chain."""
        n, S = chain.posterior.shape
        edges = self._first + np.arange(n + 1) - 0.5
        top = np.concatenate([np.zeros((n, 1)), np.cumsum(chain.posterior, 1)], axis=1)
        return [
            ax.stairs(
                np.minimum(top[:, k + 1], 1.0),
                edges,
                baseline=top[:, k],
                **{
                    "fill": True,
                    "color": colour(k),
                    "alpha": 0.35 + 0.5 / (1 + k // 6),
                    "label": chain.names[k],
                    **kwargs,
                },
            )
            for k in range(S)
        ]

    def _draw_path(self, ax, path):
        """One bar above the bands for every run of one state."""
        if path is None:
            return []
        ends = np.flatnonzero(np.diff(path)) + 1
        first = np.concatenate([[0], ends])
        last = np.concatenate([ends, [len(path)]])
        return [
            ax.plot(
                [self._first + a - 0.5, self._first + b - 0.5],
                [1.03] * 2,
                color=colour(k),
                lw=5,
                solid_capstyle="butt",
            )[0]
            for a, b, k in zip(first, last, path[first])
        ]

    def _draw_sequence(self, ax):
        """Letters, or lines of codes or values."""
        if self.sequence is None:
            ax.axis("off")
            return
        n = len(self.sequence)
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


@dataclass(frozen=True)
class _Chain:
    """Checked posterior, path and names of one chain of states."""

    posterior: NDArray[np.float64]
    path: NDArray[np.intp] | None
    names: list[str]


def _chain(at, posterior, path, state_names):
    """`at` is the place in lists of several chains, such as "[0]"."""
    name = f"posterior{at}"
    table = v.as_doubles(name, posterior)
    if table.ndim != 2 or not table.size:
        raise ValueError(
            f"{name} has shape {table.shape}; (n_steps, n_states) is expected."
        )
    total = table.sum(axis=1)
    if not (table >= 0).all() or np.abs(total - 1.0).max() > 1e-6:
        worst = int(np.argmax(np.abs(total - 1.0)))
        raise ValueError(
            f"{name}[{worst}] sums to {total[worst]:g}; its rows must be "
            "probabilities that sum to 1."
        )
    n, S = table.shape
    names = [str(k) for k in range(S)] if state_names is None else list(state_names)
    if len(names) != S:
        raise ValueError(f"state_names{at} has {len(names)} names for {S} states.")
    return _Chain(table, None if path is None else _checked_path(path, n, S), names)


def _several_chains(posterior, path, state_names):
    C = len(posterior)
    names = [None] * C if state_names is None else list(state_names)
    if len(names) != C:
        raise ValueError(
            f"state_names has {len(names)} entries for {C} chains; pass a list with "
            "the names of the states of each."
        )
    paths = [None] * C
    if path is not None:
        path = np.asarray(path)
        if path.ndim != 2 or path.shape[1] != C:
            raise ValueError(
                f"path has shape {path.shape}; (n_steps, {C}) is expected, a column "
                "for each chain."
            )
        paths = list(path.T)
    chains = [
        _chain(f"[{c}]", table, own, labels)
        for c, (table, own, labels) in enumerate(zip(posterior, paths, names))
    ]
    for c, chain in enumerate(chains):
        if len(chain.posterior) != len(chains[0].posterior):
            raise ValueError(
                f"posterior[{c}] has {len(chain.posterior)} rows but posterior[0] has "
                f"{len(chains[0].posterior)}; all chains have the same steps."
            )
    return chains


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
