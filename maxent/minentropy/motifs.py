"""Max-margin min-entropy motif finder."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxent._core import motifs as _core
from maxent._inputs.letters import complements
from maxent._inputs.sequences import MISSING, symbol_sequences
from maxent._support import validation as v
from maxent._support.fitted import check_fitted
from maxent._support.threads import effective_threads
from maxent._support.typing import ClassWeight, RandomState
from maxent.minentropy._base import MinEntropyBase
from maxent.minentropy._features import ListedFeatures, side_rows
from maxent.minentropy.classifier import Init, Solver

_MOST_WORDS = 100_000


class MotifFeatures(ListedFeatures):
    """A motif anywhere in a sequence, against a background of words.

    Parameters
    ----------
    found : Sequences
        Codes of letters.
    width, letters, word : int
        m, A, and the letters o of a background word, 0 for none.
    complement : ndarray of int (A,) or None
        Codes of the complements: both strands are read.
    intercept : float
        Value of a constant feature; 0 for none.
    """

    def __init__(self, found, width, letters, word, complement, intercept):
        self.n, self.K, self.m, self.A = len(found), 2, width, letters
        self.strands, self.intercept = 1 if complement is None else 2, intercept
        self.n_words = letters**word if word else 0
        self.d = width * letters + self.n_words + bool(intercept)
        reads, lengths = list(found), np.repeat(found.lengths, self.strands)
        if complement is not None:
            known = np.append(complement, MISSING)  # the last one is that of -1
            reads = [one for x in reads for one in (x, known[x[::-1]])]
        codes = np.concatenate(reads)
        self.reads = np.concatenate([[0], np.cumsum(lengths)]).astype(np.intp)
        places = lengths - width + 1
        self.entries = np.concatenate([[0], np.cumsum(places)]).astype(np.intp)
        self.offsets = np.ascontiguousarray(self.entries[:: self.strands])
        self.words = _word_codes(codes, self.reads, letters, word)
        self.words[self.words < 0] = self.n_words
        self.codes = np.where(codes < 0, letters, codes).astype(np.int8)

    def raw_scores(self, w):
        split = self.m * self.A
        W = np.zeros((self.m, self.A + 1))
        W[:, :-1] = w[:split].reshape(self.m, self.A)
        bg = np.append(w[split : split + self.n_words], 0.0)
        t = np.empty(self.entries[-1])
        _core.motif_scores(
            *(self.codes, self.words, self.reads, self.entries, W, bg, t),
            effective_threads(),
        )
        return t + self.intercept * w[-1] if self.intercept else t

    def pool(self, beta):
        G = np.zeros((self.n, self.d))
        _core.motif_pool(
            *(self.codes, self.words, self.reads, self.entries, self.strands),
            *(self.m, self.A + 1, self.n_words, beta, G),
            effective_threads(),
        )
        if self.intercept:
            G[:, -1] = self.intercept * np.add.reduceat(beta, self.offsets[:-1])
        return G[:, None]

    def table(self, values, fill):
        out = np.full((self.n, 2), fill, dtype=values.dtype)
        out[:, 1] = values
        return out

    def segment_orders(self, alpha):
        return np.full(self.n, alpha[1])

    def rows(self, G, i, y):
        return side_rows(G, i, y, 2)

    def at_weights(self, G, w):
        return np.column_stack([np.zeros(self.n), G[:, 0] @ w])

    def hidden_sizes(self, codes):
        """Places of every sequence, whatever its label."""
        return np.diff(self.offsets)

    def forbid(self, allowed, codes):
        """Leave out places of positive sequences."""
        positive = np.repeat(codes == 1, np.diff(self.offsets))
        self._forbid(np.flatnonzero(positive & ~allowed))

    def split(self, values, codes):
        """Values of the places of positive sequences; one of a negative one."""
        ends = zip(codes, self.offsets[:-1], self.offsets[1:], strict=True)
        return [values[lo:hi].copy() if y else np.ones(1) for y, lo, hi in ends]


def _word_codes(codes, reads, letters, word):
    """Code of the word that begins at each place, -1 if not whole or not known."""
    out = np.full(len(codes), -1, dtype=np.intc)
    if not word:
        return out
    whole = len(codes) - word + 1
    if whole > 0:
        value, known = np.zeros(whole, dtype=np.intp), np.ones(whole, dtype=bool)
        for j in range(word):
            own = codes[j : j + whole]
            value, known = letters * value + own, known & (own >= 0)
        out[:whole] = np.where(known, value, -1)
    for back in range(1, word):  # words that would end in the next read
        at = reads[1:] - back
        out[at[at >= 0]] = -1
    return out


class M3EMotifClassifier(MinEntropyBase):
    """Max-margin min-entropy motif finder in DNA, RNA or protein sequences.

    Positive sequences, those of the label `pos_label`, hold a motif of known width at
    an unknown place: weights of the letters at each of its positions, against weights
    of the background words that it covers. A Renyi entropy makes one number of the
    scores of all places, from their average (alpha = 0: many places bind) to their
    maximum (alpha = inf).

    Parameters
    ----------
    width : int, or tuple of two int
        Letters of the motif, m. Of the least and largest one of a range `fit` tries
        those that are about root 2 apart (6, 8, 11, 16, ... and the last one), and
        takes that with the largest area under the ROC curve of held-out sequences: the
        mean of three folds, the narrowest of equal ones.
    background : int, default=2
        Letters of a background word, o; 0 for no background.
    alphabet : str, default="ACGT"
        Letters.
    pos_label : label, optional
        Class of the sequences that have the motif; ``classes_[1]``, the last in sorted
        order, by default.
    both_strands : bool, default=False
        Read the reverse complement too, with words as they stand on that strand.
    missing : str, optional
        Letters that stand for an unknown one: they add nothing, and words with one are
        passed over. None takes the codes of IUPAC: N, R, Y, ... beside the bases of DNA
        and RNA, X, B, Z and J beside amino acids, none beside other letters.
    alpha : float, default=inf
        Order in [0, inf].
    C : float, default=100.0
        Weight of the margin errors, > 0, divided by the sum of the sample weights.
    loss_matrix : array-like (2, 2), optional
        Delta[true, predicted] >= 0 with a zero diagonal.
    init : {"auto", "zero", "random", "path"} or array-like, default="auto"
        Starts, as for :class:`M3EClassifier`.
    n_init : int, default=4
        Random starts.
    solver : {"auto", "prox", "ball", "cccp", "latent_svm"} or TrustBall, default="auto"
        As for :class:`M3EClassifier`.
    temperature : float, default=1.0
        b > 0, the type of the entropy.
    fit_intercept : bool, default=True
        Add a constant to the scores of positive sequences.
    class_weight : dict, "balanced" or None, default=None
        Factors of C by class, 1 of those that a dict leaves out.
    tol : float, default=1e-4
        Stationarity that ends learning.
    max_iter : int, default=200
        Bound on the outer steps of each start.
    qp_tol : float, default=1e-8
        Relative gap of the margin problems.
    random_state : int, Generator, RandomState or None, default=None
        Of the random starts.
    verbose : bool or int, default=False
        Print progress: time, solver, iteration, objective and how far from `tol`.

    Attributes
    ----------
    coef_ : ndarray (m * A + A ** o + 1,)
        All weights: motif, background words, constant.
    motif_ : ndarray (m, A)
        Weights of the letters at each position.
    background_ : ndarray (A ** o,)
        Weights of the words, in the order of the alphabet.
    width_ : int
        Letters of the motif.
    width_scores_ : dict
        Held-out score of every width that was tried, where `width` is a range.
    pos_label_ : label
        Class that has the motif.
    classes_, objective_, objective_history_, stationarity_, restarts_, n_iter_
        As for :class:`M3EClassifier`.
    converged_ : bool
        Whether `stationarity_` is within `tol`.

    See Also
    --------
    M3EClassifier : Bags of vectors.
    Motif : The motif as a table of letters, which scans sequences.
    find_motifs : Several motifs, one after the other.

    Notes
    -----
    A pass over the scores costs O(letters x m). `predict_hidden` gives the first place
    of the motif; with both strands, places beyond L - m are those of the reverse
    complement. A learnt motif may be shifted by a letter or two.

    References
    ----------
    Yu & Joachims (2009), Learning structural SVMs with latent variables, section 5.2.
    Miller, Kumar, Packer, Goodman & Koller (2012), section 5.1.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent.minentropy import M3EMotifClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = ["".join(rng.choice(list("ACGT"), 20)) for _ in range(60)]
    >>> X = [x[:7] + "TATAAT" + x[13:] if i % 2 else x for i, x in enumerate(X)]
    >>> y = np.arange(60) % 2
    >>> M3EMotifClassifier(6, alpha=2.0, C=50.0, random_state=0).fit(X, y).score(X, y)
    1.0
    """

    def __init__(
        self,
        width: int | tuple[int, int],
        background: int = 2,
        alphabet: str = "ACGT",
        *,
        pos_label: Any = None,
        both_strands: bool = False,
        missing: str | None = None,
        alpha: float = np.inf,
        C: float = 100.0,
        loss_matrix: ArrayLike | None = None,
        init: Init | ArrayLike = "auto",
        n_init: int = 4,
        solver: Solver = "auto",
        temperature: float = 1.0,
        fit_intercept: bool = True,
        class_weight: ClassWeight = None,
        tol: float = 1e-4,
        max_iter: int = 200,
        qp_tol: float = 1e-8,
        random_state: RandomState = None,
        verbose: bool | int = False,
    ) -> None:
        self.width = width
        self.background = background
        self.alphabet = alphabet
        self.pos_label = pos_label
        self.both_strands = both_strands
        self.missing = missing
        self.alpha = alpha
        self.C = C
        self.loss_matrix = loss_matrix
        self.init = init
        self.n_init = n_init
        self.solver = solver
        self.temperature = temperature
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.qp_tol = qp_tol
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        hidden_mask: Any = None,
    ) -> M3EMotifClassifier:
        """Learn a motif.

        Parameters
        ----------
        X : list of str, list of array-like of int, or path
            Sequences, of any lengths >= `width`; codes -1 are unknown letters. A path
            is that of a FASTA file, or of one sequence a line.
        y : array-like (n,)
            Labels of two classes; `pos_label` has the motif.
        sample_weight : array-like (n,), optional
            Weights >= 0 of the margin errors; 0 drops a sequence.
        hidden_mask : list of array-like of bool, optional
            At which of its places a sequence may have the motif; None in the list for
            a sequence without annotation. Masks of negative sequences change nothing,
            but they too have to allow one place.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            For a parameter outside its domain, letters outside the alphabet, sequences
            shorter than the motif, and labels of more or fewer than two classes.

        Warns
        -----
        ConvergenceWarning
            If the stationarity is above `tol`.
        UserWarning
            If w = 0 is nearly stationary, so that random starts were made as well, and
            if all training samples are given one class.
        """
        if not _is_range(self.width):
            return self._learn(X, y, sample_weight, hidden_mask)
        try:
            scores = self._choose_width(X, y, sample_weight, hidden_mask)
            # the first of equals
            self._chosen_width = max(scores, key=scores.__getitem__)
            self._learn(X, y, sample_weight, hidden_mask)
        finally:
            self.__dict__.pop("_chosen_width", None)
        self.width_scores_ = scores
        return self

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags

    def _features(self, X, K, fit):
        width = self._width_of_fit() if fit else self._width_to_predict()
        word = self.background
        if word != 0:
            word = v.check_count("background", word)
        found = self._read(X)
        short = np.flatnonzero(found.lengths < width)
        if len(short):
            first, remedy = short[0], ", or take a smaller width" if fit else ""
            raise ValueError(
                f"X[{first}] has {found.lengths[first]} letters, fewer than the motif, "
                f"whose width is {width} ({len(short)} of {len(found)} sequences are "
                f"so short); drop such sequences{remedy}."
            )
        size = len(self.alphabet)
        if size**word > _MOST_WORDS or size > 126:
            raise ValueError(
                f"background={word} makes {size**word} words of {size} letters; "
                f"at most {_MOST_WORDS} are taken: take a smaller background."
            )
        return MotifFeatures(
            *(found, width, size, word, self._complement()),
            1.0 if self.fit_intercept else 0.0,
        )

    def _read(self, X):
        if isinstance(X, np.ndarray) and X.ndim == 2:  # codes, one sequence a row
            X = list(X)
        letters = {"alphabet": self.alphabet, "missing": self.missing}
        return symbol_sequences(X, **letters, name="X")

    def _width_of_fit(self):
        """The width that `fit` has chosen, or is given."""
        if _is_range(self.width):
            if "_chosen_width" not in vars(self):
                raise ValueError(
                    f"width={v.shown(self.width)} is a range, of which fit alone "
                    "chooses; give one width."
                )
            return self._chosen_width
        return v.check_count("width", self.width)

    def _width_to_predict(self):
        return self.width_ if _is_range(self.width) else self._width_of_fit()

    def _choose_width(self, X, y, sample_weight, hidden_mask):
        """Mean held-out score of every width of a range; None for one width."""
        low, high = (v.check_count("width", w) for w in self.width)
        if low >= high:
            raise ValueError(
                f"width={v.shown(self.width)} must be a number, or the least and the "
                "largest one of a range."
            )
        if hidden_mask is not None or not isinstance(self.init, str):
            name = "init" if hidden_mask is None else "hidden_mask"
            raise ValueError(
                f"{name} is made for one width, and width={v.shown(self.width)} is a "
                "range; give one width, or leave it out."
            )
        self._chosen_width = high
        y, weight = self._labels(y, sample_weight)
        features = self._features(X, 2, True)  # all are long enough
        if features.n != len(y):
            raise ValueError(
                f"X has {features.n} samples and y {len(y)} labels; one label for each "
                "sample is needed."
            )
        X, y, weight = self._samples_with_weight(X, y, weight)
        classes = self._outputs(np.unique(y))
        folds = _folds(y, classes)
        return {w: self._held_out(w, X, y, weight, folds) for w in widths(low, high)}

    def _samples_with_weight(self, X, y, weight):
        kept = np.flatnonzero(weight > 0)
        found = list(self._read(X))
        return [found[i] for i in kept], y[kept], weight[kept]

    def _held_out(self, width, X, y, weight, folds):
        """Mean area under the ROC curve of the folds that were held out."""
        from sklearn.base import clone
        from sklearn.metrics import roc_auc_score

        areas = []
        for train, test in folds:
            model = clone(self).set_params(width=width, verbose=False)
            with warnings.catch_warnings():  # the last fit warns
                warnings.simplefilter("ignore")
                model.fit([X[i] for i in train], y[train], weight[train])
            scores = model.decision_function([X[i] for i in test])
            last = y[test] == model.classes_[-1]
            areas.append(roc_auc_score(last, scores, sample_weight=weight[test]))
        return float(np.mean(areas))

    def _outputs(self, classes):
        if len(classes) > 2:
            label = classes[-1] if self.pos_label is None else self.pos_label
            raise ValueError(
                f"M3EMotifClassifier needs two classes and y has {len(classes)}; learn "
                f"one class against the rest, as by fit(X, y == {v.shown(label)}) "
                "without pos_label, or each class by "
                "sklearn.multiclass.OneVsRestClassifier."
            )
        return super()._outputs(classes)

    def _complement(self):
        if not self.both_strands:
            return None
        return complements(self.alphabet)

    def _one_sided(self, K):
        return K == 2

    @property
    def pos_label_(self) -> Any:
        """Label of the sequences that have the motif."""
        return self.classes_[self._order(self.classes_)[-1]]

    @property
    def motif_(self) -> NDArray[np.float64]:
        """Weights (m, A) of the letters at each position."""
        size = self.width_ * len(self.alphabet)
        return self._coefficients(0, size).reshape(self.width_, -1)

    @property
    def background_(self) -> NDArray[np.float64]:
        """Weights (A ** o,) of the background words."""
        return self._coefficients(self.width_ * len(self.alphabet), self._n_words)

    @property
    def width_(self) -> int:
        """Letters of the motif."""
        if not _is_range(self.width):
            return v.check_count("width", self.width)
        rest = np.size(self.coef_) - self._n_words - bool(self.fit_intercept)
        return rest // len(self.alphabet)

    @property
    def _n_words(self):
        return len(self.alphabet) ** self.background if self.background else 0

    def _coefficients(self, first, count):
        """This many fitted weights from one on."""
        check_fitted("coef_", self.coef_, (max(np.size(self.coef_), first + count),))
        return self.coef_[first : first + count]


def _is_range(width):
    """True of the least and largest width, and not of one number."""
    if isinstance(width, (tuple, list)) and len(width) != 2:
        raise ValueError(
            f"width={v.shown(width)} must be a number, or the least and the largest "
            "one of a range."
        )
    return isinstance(width, (tuple, list))


def widths(low: int, high: int) -> list[int]:
    """Widths of a range about root 2 apart, with both ends."""
    out = [low]
    while out[-1] < high:
        out.append(min(high, max(out[-1] + 1, int(out[-1] * np.sqrt(2.0)))))
    return out


def _folds(y, classes, n_folds=3):
    """Training and held-out samples: consecutive shares of each class, in turn."""
    counts = [int(np.sum(y == one)) for one in classes]
    if min(counts) < n_folds:
        raise ValueError(
            f"y has {min(counts)} of the label {v.shown(classes[np.argmin(counts)])}; "
            f"to choose a width {n_folds} sequences of each class are needed: give one "
            "width."
        )
    from sklearn.model_selection import StratifiedKFold

    return list(StratifiedKFold(n_folds).split(np.zeros(len(y)), y))


def best_places(model, X, y=None):
    """Sequences of the positive label, and where each has the motif.

    Parameters
    ----------
    model : M3EMotifClassifier
        Fitted.
    X : as for fit
    y : array-like (n,), optional
        The predicted labels by default.

    Returns
    -------
    index, start : ndarray of int (n_places,)
    forward : ndarray of bool (n_places,)
        False on the reverse complement; `start` is that on the sequence as given.

    Raises
    ------
    ValueError
        If no sequence has the label.
    """
    given = model.predict(X) if y is None else v.as_array("y", y)
    index = np.flatnonzero(given == model.pos_label_)
    if not len(index):
        raise ValueError(
            f"X has no sequence of class {v.shown(model.pos_label_)}, the one with the "
            "motif; give some."
        )
    at = model.predict_hidden(X, np.full(len(given), model.pos_label_))[index]
    last = model._read(X).lengths[index] - model.width_
    forward = at <= last
    return index, np.where(forward, at, 2 * last + 1 - at), forward


def letters_at(model, X, y=None):
    """Counts (m, A) of letters at the best places, shares of all, number of places.

    A letter that is unknown counts as the background.
    """
    found, size = model._read(X), len(model.alphabet)
    index, start, forward = best_places(model, X, y)
    known = found.values[found.values >= 0]
    total = np.bincount(known, minlength=size) + 1.0  # none of them is zero
    background = total / total.sum()
    first = (found.offsets[index] + start)[:, None]
    steps = np.arange(model.width_)
    codes = found.values[first + np.where(forward[:, None], steps, steps[::-1])]
    if model.both_strands:
        other = np.append(model._complement(), MISSING)
        codes = np.where(forward[:, None], codes, other[codes])
    rows = np.vstack([np.eye(size), background])[codes]  # code -1: the last one
    return rows.sum(axis=0), background, len(index)
