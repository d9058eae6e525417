"""A motif as a table of letters: scores of places, exact p-values, places found."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxent._inputs.letters import complements
from maxent._inputs.sequence_files import identifiers, read_records
from maxent._inputs.sequences import Sequences, symbol_sequences
from maxent._support import validation as v
from maxent._support.files import whole_file
from maxent._support.tables import HtmlTable
from maxent._support.typing import FloatArray, PathLike
from maxent.minentropy._score_law import ScoreLaw

_SUM = 1e-6  # how far rows of probabilities may sum from one
_MOST_BED = 1000  # of the scores of BED files


@dataclass(frozen=True, eq=False)
class MotifPlaces:
    """Places of a motif in sequences, in the order of the sequences.

    Attributes
    ----------
    motif : str
        Name of the motif.
    index : ndarray of int (n_places,)
        Which sequence, from 0.
    sequence : ndarray of str (n_places,)
        Its name.
    start, end : ndarray of int (n_places,)
        First letter, counted from 0, and the one behind the last: ``x[start:end]``.
    strand : ndarray of str (n_places,)
        "+" of the sequence as read, "-" of the reverse complement.
    score : ndarray (n_places,)
        Log-odds in bits.
    p_value : ndarray (n_places,)
        Probability that random letters score as high, or higher.
    """

    motif: str
    index: NDArray[np.intp]
    sequence: NDArray[Any]
    start: NDArray[np.intp]
    end: NDArray[np.intp]
    strand: NDArray[Any]
    score: FloatArray
    p_value: FloatArray

    def __len__(self) -> int:
        return len(self.index)

    def to_bed(self, path: PathLike | None = None) -> str:
        """Write the places as a BED file of eight columns.

        Parameters
        ----------
        path : str or path-like, optional
            Of a file to write, whole or not at all.

        Returns
        -------
        str
            Its text: name of the sequence up to the first blank, start from 0, end,
            name of the motif, -100 log10 of the p-value up to 1000, strand, score in
            bits and p-value.
        """
        with np.errstate(divide="ignore"):
            shade = np.minimum(np.rint(-100 * np.log10(self.p_value)), _MOST_BED)
        rows = [
            "\t".join(
                [
                    *(_word(name), str(start), str(end), _word(self.motif)),
                    *(str(int(shade)), str(strand), f"{score:.6g}", f"{p:.6g}"),
                ]
            )
            for name, start, end, shade, strand, score, p in zip(
                *(self.sequence, self.start, self.end, shade, self.strand),
                *(self.score, self.p_value),
                strict=True,
            )
        ]
        text = "".join(f"{row}\n" for row in rows)
        if path is not None:
            with whole_file(path, "w", encoding="utf-8", newline="\n") as stream:
                stream.write(text)
        return text


def _word(name):
    words = str(name).split()
    return words[0] if words else "."


class Motif(HtmlTable):
    """A motif: probabilities of the letters at each of its positions.

    The score of a place is the sum of the log-odds of its letters against a background
    of independent letters, in bits.

    Parameters
    ----------
    probabilities : array-like (width, n_letters)
        Of each letter at each position; rows sum to one.
    alphabet : str, default="ACGT"
        The letters, in the order of the columns.
    background : array-like (n_letters,), optional
        Probabilities > 0 of the letters elsewhere; equal ones by default.
    name : str, default="motif"
        A word, as files of motifs have it.
    n_sites : float, default=20.0
        Number of places that the probabilities rest on, > 0.
    pseudo_count : float, default=0.1
        Count > 0 that is shared out as the background at every position, so that a
        letter that was not seen has a finite score.
    significance : float, optional
        Probability that sequences without the motif, held out, are told from those
        with it as well by chance.

    Attributes
    ----------
    weights : ndarray (width, n_letters)
        Log-odds in bits.
    consensus : str
        The most probable letter of each position.
    information : ndarray (width,)
        Relative entropy of each position against the background, in bits.

    Raises
    ------
    ValueError
        For rows that are no probabilities, and an alphabet of another size.

    See Also
    --------
    find_motifs : Several motifs of two classes of sequences.
    read_motifs : Motifs of MEME and JASPAR files.

    Notes
    -----
    p-values are of one place, whose letters are drawn independently from `background`.
    Weights are rounded to 1 / 2^17 of the range of the scores, which makes the law of
    the score a vector (Staden, 1989); the rounding is carried through, so that the
    p-value is never below the exact one. :meth:`p_values` gives the lower bound too.

    References
    ----------
    Staden (1989), Methods for calculating the probabilities of finding patterns in
    sequences, CABIOS 5.
    Grant, Bailey & Noble (2011), FIMO: scanning for occurrences of a given motif.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.minentropy import Motif
    >>> table = np.full((6, 4), 0.05)
    >>> table[range(6), [3, 0, 3, 0, 0, 3]] = 0.85
    >>> motif = Motif(table, name="TATA")
    >>> motif.consensus
    'TATAAT'
    >>> X = {"a": "GGTATAATGG", "b": "GGATTATACC"}
    >>> bed = motif.scan(X, both_strands=True, threshold=1e-2).to_bed()
    >>> print(bed.expandtabs(1), end="")
    a 2 8 TATA 361 + 10.5628 0.000244141
    b 2 8 TATA 361 - 10.5628 0.000244141
    """

    def __init__(
        self,
        probabilities: ArrayLike,
        alphabet: str = "ACGT",
        *,
        background: ArrayLike | None = None,
        name: str = "motif",
        n_sites: float = 20.0,
        pseudo_count: float = 0.1,
        significance: float | None = None,
    ) -> None:
        table = v.as_doubles("probabilities", probabilities)
        if table.ndim != 2 or not table.size:
            raise ValueError(
                f"probabilities has shape {table.shape}; a row for each position and a "
                "column for each letter are needed."
            )
        if (
            not isinstance(alphabet, str)
            or len({*alphabet}) != table.shape[1]
            or len(alphabet) != table.shape[1]
        ):
            raise ValueError(
                f"alphabet={v.shown(alphabet)} must be a str of {table.shape[1]} "
                "different letters, one for each column of probabilities."
            )
        size = len(alphabet)
        if background is None:
            background = np.full(size, 1.0 / size)
        shares = v.as_doubles("background", background)
        if shares.shape != (size,) or not (shares > 0).all():
            raise ValueError(
                f"background={v.shown(shares.tolist())} must be {size} probabilities "
                "> 0, one for each letter; add a pseudo-count to zeros."
            )
        _check_sums("probabilities", table)
        _check_sums("background", shares[None])
        if not isinstance(name, str) or len(name.split()) != 1:
            raise ValueError(f"name={v.shown(name)} must be a word without blanks.")
        self.probabilities = table.copy()
        self.alphabet = alphabet
        self.background = shares.copy()
        self.name = name
        self.n_sites = v.check_positive("n_sites", n_sites)
        self.pseudo_count = v.check_positive("pseudo_count", pseudo_count)
        self.significance = None
        if significance is not None:
            self.significance = v.check_nonnegative("significance", significance)
        for array in (self.probabilities, self.background):
            array.flags.writeable = False

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike | None = None,
        *,
        name: str = "motif",
        pseudo_count: float = 0.1,
    ) -> Self:
        """Count the letters where a fitted classifier sees its motif.

        Parameters
        ----------
        estimator : M3EMotifClassifier
            Fitted.
        X : as for its fit
            Sequences; all of them make the background.
        y : array-like (n,), optional
            Labels: the best place of each sequence of ``pos_label_`` is counted. The
            predicted labels by default.
        name, pseudo_count
            As for the class.

        Returns
        -------
        Motif

        Raises
        ------
        ValueError
            For another estimator, one that is not fitted, and X without a sequence of
            ``pos_label_``.
        """
        from sklearn.utils.validation import check_is_fitted

        from maxent.minentropy.motifs import M3EMotifClassifier, letters_at

        if not isinstance(estimator, M3EMotifClassifier):
            raise v.not_this("estimator", estimator, "a fitted M3EMotifClassifier")
        check_is_fitted(estimator)
        counts, background, n_sites = letters_at(estimator, X, y)
        return cls(
            counts / n_sites,
            estimator.alphabet,
            background=background,
            name=name,
            n_sites=n_sites,
            pseudo_count=pseudo_count,
        )

    def get_spec(self) -> dict[str, Any]:
        """Return the arguments of the constructor.

        Returns
        -------
        dict
        """
        names = "probabilities alphabet background name n_sites pseudo_count"
        return {n: vars(self)[n] for n in [*names.split(), "significance"]}

    def _shown_in_table(self):
        return {"consensus": self.consensus} | self.get_spec()

    def __repr__(self) -> str:
        return (
            f"Motif(name={self.name!r}, consensus={self.consensus!r}, "
            f"n_sites={self.n_sites:g})"
        )

    def __len__(self) -> int:
        return len(self.probabilities)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Motif):
            return NotImplemented
        pairs = zip(self.get_spec().values(), other.get_spec().values(), strict=True)
        return all(np.array_equal(a, b) for a, b in pairs)

    __hash__ = None  # type: ignore[assignment]

    @functools.cached_property
    def weights(self) -> FloatArray:
        """Log-odds (width, n_letters) in bits."""
        total = self.n_sites + self.pseudo_count
        counts = self.n_sites * self.probabilities
        smooth = (counts + self.pseudo_count * self.background) / total
        return np.log2(smooth / self.background)

    @property
    def consensus(self) -> str:
        """The most probable letter of each position, the first of equal ones."""
        return "".join(self.alphabet[k] for k in self.probabilities.argmax(axis=1))

    @property
    def information(self) -> FloatArray:
        """Relative entropy (width,) of each position, in bits."""
        p = self.probabilities
        terms = np.where(p > 0, p, 1.0) / self.background
        return (p * np.log2(np.where(p > 0, terms, 1.0))).sum(axis=1)

    def reverse_complement(self) -> Self:
        """Return the motif as read on the other strand.

        Returns
        -------
        Motif

        Raises
        ------
        ValueError
            For letters without a complement.
        """
        other = complements(self.alphabet)
        spec = {**self.get_spec(), "background": self.background[other]}
        return type(self)(**{**spec, "probabilities": self.probabilities[::-1, other]})

    @functools.cached_property
    def _law(self) -> ScoreLaw:
        return ScoreLaw(self.weights, self.background)

    def p_values(self, scores: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Bounds of the probability that random letters score so high.

        Parameters
        ----------
        scores : array-like
            In bits, as :meth:`scan` returns them.

        Returns
        -------
        lower, upper : ndarray
            P(S >= score) lies between them; `upper` is the p-value of :meth:`scan`.
            They differ by the probability of scores within `width` steps of 2^-17 of
            the range.
        """
        found = v.as_doubles("scores", scores)
        if np.isnan(found).any():
            raise ValueError("scores has NaN; give finite scores in bits.")
        return self._law.bounds(found)

    def scan(
        self,
        sequences: Any,
        *,
        names: Iterable[str] | None = None,
        both_strands: bool = False,
        threshold: float = 1e-4,
        missing: str | None = None,
    ) -> MotifPlaces:
        """Return the places of sequences where the motif is.

        Parameters
        ----------
        sequences : list of str, dict of str, list of array-like of int, or path
            Sequences of any lengths, codes in the order of the alphabet; a dict has
            their names; of a FASTA file the headers have.
        names : iterable of str, optional
            A name of each sequence; its number from 0 by default.
        both_strands : bool, default=False
            Read the reverse complement too.
        threshold : float, default=1e-4
            Largest p-value of a place, in (0, 1].
        missing : str, optional
            Letters that stand for an unknown one; places with one are passed over. None
            takes the codes of IUPAC beside the alphabet.

        Returns
        -------
        MotifPlaces
            By sequence, start and strand.

        Raises
        ------
        ValueError
            For letters outside the alphabet, and names of another number.
        """
        limit = v.check_positive("threshold", threshold)
        if limit > 1:
            raise v.not_this("threshold", threshold, "a p-value in (0, 1]")
        sequences, names = _named(sequences, names)
        found = symbol_sequences(sequences, alphabet=self.alphabet, missing=missing)
        words = [str(i) for i in range(len(found))] if names is None else list(names)
        if len(words) != len(found):
            raise ValueError(
                f"names has {len(words)} entries for {len(found)} sequences; give one "
                "for each."
            )
        tables = [("+", self.weights)]
        if both_strands:
            tables.append(("-", self.weights[::-1, complements(self.alphabet)]))
        parts = [self._on_strand(found, *pair, limit) for pair in tables]
        at, strand, score, p_value = (np.concatenate(x) for x in zip(*parts))
        order = np.lexsort((strand, at))
        at = at[order]
        index = np.searchsorted(found.offsets, at, side="right") - 1
        start = at - found.offsets[index]
        return MotifPlaces(
            *(self.name, index, np.array(words)[index], start, start + len(self)),
            *(strand[order], score[order], p_value[order]),
        )

    def _on_strand(
        self, found: Sequences, strand: str, weights: FloatArray, limit: float
    ) -> tuple[NDArray[Any], ...]:
        """First letters, strands, scores and p-values of the places within a limit."""
        m, codes = len(self), found.values
        table = np.column_stack([weights, np.full(m, -np.inf)])  # code -1: no place
        scores = np.zeros(max(len(codes) - m + 1, 0))
        for j in range(m):
            scores += table[j, codes[j : j + len(scores)]]
        for back in range(1, m):  # places that end in the next sequence
            at = found.offsets[1:] - back
            scores[at[(at >= 0) & (at < len(scores))]] = -np.inf
        at = np.flatnonzero(scores > -np.inf)
        _, p_values = self._law.bounds(scores[at])
        kept = p_values <= limit
        at = at[kept]
        return at, np.full(len(at), strand), scores[at], p_values[kept]


def _named(sequences, names):
    """Sequences and names of a dict or of a file, or as given."""
    if isinstance(sequences, dict):
        return list(sequences.values()), list(sequences) if names is None else names
    if isinstance(sequences, os.PathLike):
        found = read_records(sequences)
        return found.sequences, identifiers(found) if names is None else names
    return sequences, names


def _check_sums(name, rows):
    if not (np.isfinite(rows) & (rows >= 0)).all():
        i, j = np.argwhere(~(np.isfinite(rows) & (rows >= 0)))[0]
        raise ValueError(
            f"{name} has the entry {rows[i, j]:g}; probabilities are >= 0."
        )
    sums = rows.sum(axis=1)
    wrong = np.flatnonzero(np.abs(sums - 1.0) > _SUM)
    if len(wrong):
        raise ValueError(
            f"{name}: row {wrong[0]} sums to {sums[wrong[0]]:.10g}; probabilities of "
            "one position sum to one."
        )
