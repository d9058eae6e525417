"""MEDPartialLabelClassifier: discrimination with labels that are unknown or doubted."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.metrics import accuracy_score
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from maxent._inputs.estimator_input import validated
from maxent._support import validation as v
from maxent._support.fitted import CertifiedState, check_fitted_classes, fresh_state
from maxent._support.progress import progress_of, with_progress
from maxent._support.random_state import as_generator
from maxent._support.results import Status, warn_not_converged
from maxent._support.threads import single_threaded_blas
from maxent._support.typing import (
    ArrayLike,
    FloatArray,
    MatrixLike,
    NDArray,
    RandomState,
)
from maxent.discrimination._class_rows import labels_of
from maxent.discrimination._generative_base import GenerativeClassifier
from maxent.discrimination.classifier import MEDClassifier
from maxent.discrimination.duals._definiteness import warn_indefinite
from maxent.discrimination.labels._joint_labels import enumerate_labels
from maxent.discrimination.labels._label_machines import (
    BlockMachines,
    KernelMachines,
    SelectionMachines,
)
from maxent.discrimination.labels._label_priors import (
    UNLABELLED,
    label_priors,
    with_unlabelled,
)
from maxent.discrimination.labels._label_rounds import (
    alternate,
    best_of_starts,
    descend,
    label_starts,
    warn_of_drift,
    warn_unsettled,
)
from maxent.discrimination.labels._several_labels import SeveralMachines
from maxent.discrimination.selection import MEDFeatureSelector

_METHODS = ("alternating", "direct", "exact")
_KINDS = {
    MEDClassifier: KernelMachines,
    MEDFeatureSelector: SelectionMachines,
    GenerativeClassifier: BlockMachines,
}


def _has_probabilities(self):
    """True if the machine has probabilities."""
    machine = vars(self).get("estimator_", self._machine())
    if hasattr(machine, "predict_proba") and "estimators_" not in vars(self):
        return True
    # not its own error: what that recommends is not calibrated with soft labels
    raise AttributeError(
        f"MEDPartialLabelClassifier has no probabilities with estimator="
        f"{v.shown(machine)}; calibrate its decision_function on labelled rows held "
        "out, or take the probabilities of a machine of the labelled rows alone."
    )


def _kind_of(estimator):
    """Class of machines that trains an estimator on label means."""
    for kind, machines in _KINDS.items():
        if isinstance(estimator, kind):
            return machines
    raise TypeError(
        f"estimator={v.shown(estimator)} cannot be trained on label means; use "
        "MEDClassifier, MEDFeatureSelector, MEDGaussianClassifier, "
        "MEDBayesNetClassifier or MEDTreeClassifier. Scalers and other steps come "
        "before the whole, in a pipeline."
    )


class MEDPartialLabelClassifier(CertifiedState, ClassifierMixin, BaseEstimator):
    """Discrimination with labels that are missing, doubted, or given as probabilities.

    Semi-supervised and noisy-label learning. With a kernel machine it is what is known
    as a transductive SVM, with a margin prior and soft labels. Labels are random
    variables with prior probabilities; machine and label means are fitted in turn, and
    both halves of every round lower one objective. More than two classes have a machine
    each, and one distribution over the labels of a row.

    Parameters
    ----------
    estimator : estimator, optional
        What to train, with its parameters: a :class:`MEDClassifier` with any kernel,
        :class:`MEDFeatureSelector`, :class:`MEDGaussianClassifier`,
        :class:`MEDBayesNetClassifier` or :class:`MEDTreeClassifier`. None is
        ``MEDClassifier()``. Its ``class_weight="balanced"`` counts labelled rows.
    method : {"alternating", "direct", "exact"}, default="alternating"
        "alternating" works for every estimator. For kernel machines there are two more:
        "direct" minimises the risk that is left once every label mean is at its best
        value, by L-BFGS, in O(n_samples**3); "exact" drops the assumption that machine
        and labels are independent and enumerates all labellings of at most 12 rows,
        with a proven global optimum, for an estimator without a flat bias.
    step : float, default=1.0
        Share of the way to their best values that label means go in a round of
        "alternating", in (0, 2). From 1 on, rounds of kernel machines may start from a
        machine beyond the last one, where that lowers the objective, which saves
        rounds. A step above 1 goes beyond the best values; it is taken where the
        objective does not rise by it, and 1 otherwise. The paper has 0.1: small steps
        leave the first machine farther behind. They may rank rows better and put the
        boundary in a worse place; see the user guide.
    class_prior : float, array-like (n_classes,) or "labelled", optional
        Probability of ``classes_[1]``, or of each of several classes, for rows without
        a label; "labelled" is the share among labelled rows. None: such rows prefer no
        class.
    n_init : int, default=1
        Starts of "alternating" and "direct", >= 1; the one of the lowest objective is
        kept. The first begins with the machine of the labelled rows, the others guess
        the labels of a few more rows. A lower objective need not be more accurate where
        the classes overlap; see the user guide.
    max_rounds : int, default=200
        Bound on the rounds, or on the iterations of the other methods.
    tol : float, default=1e-2
        The fit has converged where no label mean is farther than this from its best
        value, and the last round has decreased the objective by less than ``tol**2``,
        relatively. The machines are trained to the `tol` of `estimator`. For "exact"
        the relative duality gap.
    random_state : int, Generator, RandomState or None, default=None
        Of the starts after the first.
    verbose : bool or int, default=False
        Print progress: time, round, objective and how far from `tol`.

    Attributes
    ----------
    classes_ : ndarray (n_classes,)
        The labels.
    label_mean_ : ndarray (n_samples,) or (n_samples, n_classes)
        Expected label of every row, -1 for ``classes_[0]`` and +1 for ``classes_[1]``:
        the probability of ``classes_[1]`` is ``(1 + label_mean_) / 2``. With more than
        two classes a column each, 1 for the class and -1 for the others.
    transduction_ : ndarray (n_samples,)
        The more probable class of every row: labels that are given are kept.
    estimator_ : estimator
        The trained machine of two classes.
    estimators_ : list of estimator
        The trained machines of more than two classes, each against the others.
    objective_ : float
        Objective reached: a local minimum; for "exact" a lower bound of the global one,
        `duality_gap_` below it at most.
    objective_history_ : ndarray (1 + 2 * rounds,)
        Objective of the first machine, and after both halves of every round: new label
        means, new machine. It never increases. For "direct" after every iteration, and
        after both halves of the round that ends it; for "exact" the dual objective at
        every certificate, which grows.
    objectives_ : ndarray (n_init,)
        Objective that every start has reached.
    label_change_ : float
        Largest distance of a label mean from its best value, compared with `tol`.
    duality_gap_ : float
        How far the machine may be from the best one for its label means.
    n_iter_ : int
        Rounds.
    converged_ : bool
        Whether the tolerance was met.
    n_features_in_, feature_names_in_
        As usual.

    See Also
    --------
    MEDClassifier : The machine where all labels are known.
    sklearn.semi_supervised.SelfTrainingClassifier : Hard labels, one after the other.

    Notes
    -----
    The objective, over machines w, biases b and label means p, is

    ``D = KL(w) + sum_t weight_t [ell(p_t f_t) + KL(p_t || P0_t)]``

    with the loss ell of the margin prior. Each half of a round minimises a convex
    function; together they are not convex, and the fit ends in a local minimum. Rows
    with ``p_t = 0`` say nothing to the machine, so the first machine is that of the
    labelled rows. Time is that of a warm-started fit of `estimator` a round. The paper
    has two classes. Of more, machine k tells class k from the others, with label means
    ``q_k = 2 P(k) - 1``, and a row costs ``sum_k ell(q_k f_k) + KL(P || P0)``.
    Probabilities are too sure where classes overlap: calibrate decision values on
    labelled rows held out (:doc:`/guide/partial_labels`).

    References
    ----------
    Jaakkola, Meila & Jebara (1999), section 5, Definition 4, eqs. (51)-(52), appendix
    C, Theorem 7.

    Examples
    --------
    >>> import numpy as np
    >>> from maxent import MEDPartialLabelClassifier
    >>> X = np.array([[-3.0], [-2.5], [-2.0], [2.0], [2.5], [3.0]])
    >>> y = np.array([0, -1, -1, -1, -1, 1])  # -1 is unlabelled
    >>> model = MEDPartialLabelClassifier().fit(X, y)
    >>> model.transduction_
    array([0, 0, 0, 1, 1, 1])
    """

    classes_: NDArray[Any]
    label_mean_: FloatArray
    transduction_: NDArray[Any]
    estimator_: Any
    estimators_: list[Any]
    label_change_: float
    objectives_: FloatArray

    def __init__(
        self,
        estimator: Any = None,
        *,
        method: Literal["alternating", "direct", "exact"] = "alternating",
        step: float = 1.0,
        class_prior: float | Literal["labelled"] | None = None,
        n_init: int = 1,
        max_rounds: int = 200,
        tol: float = 1e-2,
        random_state: RandomState = None,
        verbose: int = False,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.step = step
        self.class_prior = class_prior
        self.n_init = n_init
        self.max_rounds = max_rounds
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self._machine()).input_tags
        return tags

    def _machine(self):
        return MEDClassifier() if self.estimator is None else self.estimator

    @fresh_state
    @with_progress
    def fit(
        self,
        X: MatrixLike,
        y: ArrayLike | None = None,
        label_prior: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit the machine and the label means.

        Parameters
        ----------
        X : array-like or CSR (n_samples, n_features)
            As `estimator` takes it; with kernel="precomputed" the kernel matrix.
        y : array-like (n_samples,), optional
            Labels; -1, None or NaN is a row without a label, so that labels must not
            be -1 and 1; labels of text beside it make an array of objects. Without y
            the classes are 0, 1, and so on.
        label_prior : array-like (n_samples,) or (n_samples, n_classes), optional
            Probability of ``classes_[1]`` for every row, in [0, 1], or of all classes,
            which add up to one; NaN takes y. Use it for labels that may be wrong: 0.9
            for a label of 1 that is wrong one time in ten. Zeros say which labels a row
            cannot have.
        sample_weight : array-like (n_samples,), optional
            Weight w stands for w copies of the row with a common label; 0 drops it.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            For a parameter outside its domain, label priors outside [0, 1], no label
            at all, labelled rows of one class only, or
            ``margin="fixed"``, which no row without a label can meet.
        TypeError
            For an estimator of another kind.

        Warns
        -----
        ConvergenceWarning
            If the tolerance is not met; the attributes say how far the fit came.
        """
        step, n_init, max_rounds, tol = self._checked_parameters()
        rng = as_generator(self.random_state)
        kind = self._checked_kind()
        machine = clone(self._machine())
        rows, labels = self._rows_and_labels(machine, X, y, label_prior, sample_weight)
        if len(labels.classes) > 2:
            machines = SeveralMachines(kind, machine, rows, labels)
        else:
            machines = kind(machine, rows, labels)

        def store(model, state):
            model._store(machines, labels, state)

        callback = progress_of(self, store, task="round")
        options = {"tol": tol, "max_rounds": max_rounds, "callback": callback}
        try:
            with single_threaded_blas():  # once: 5 % of the time of all rounds
                if self.method == "exact":
                    state = enumerate_labels(machines, **options)
                    self.objectives_ = np.array([state.objective])
                else:
                    if self.method == "alternating":
                        options["step"] = step
                    method = alternate if self.method == "alternating" else descend
                    starts = list(label_starts(labels, n_init, rng))
                    state, self.objectives_ = best_of_starts(
                        method, machines, starts, **options
                    )
            self._store(machines, labels, state)
        finally:
            machines.close()
        progress = vars(self).get("_progress")
        if progress is not None:
            text = f"objective {state.objective:.6g}, label change {state.change:.1e}"
            progress.closing(state.status, self.method, state.n_iter, text)
        self._warn(state, labels, tol, max_rounds)
        return self

    def _warn(self, state, labels, tol, max_rounds):
        """Warn of label means, or a last machine, that are not what was asked for."""
        name, result = type(self).__name__, state.machine.result
        step = self.step if self.method == "alternating" else None
        if state.status is not Status.STOPPED:
            warn_of_drift(self, state, labels, step)
        if self.method == "exact":
            if not result.converged:
                warn_not_converged(name, result, tol, max_rounds, bound="max_rounds")
            return
        if state.status is Status.MAX_ITER:
            warn_unsettled(name, state, tol, max_rounds, step)
        if np.isnan(result.gap):
            warn_indefinite(name, result)
        elif not result.converged:
            machine = self._machine()
            name = f"{type(machine).__name__} of the last round"
            warn_not_converged(name, result, float(machine.tol), machine.max_iter)

    def _checked_kind(self):
        """Class of machines for the method asked for; refuse one that has none."""
        kind = _kind_of(self._machine())
        if self.method != "alternating" and kind is not KernelMachines:
            raise ValueError(
                f"method={self.method!r} is for kernel machines, not for "
                f"{type(self.estimator).__name__}; use method='alternating'."
            )
        return kind

    def _rows_and_labels(self, machine, X, y, label_prior, sample_weight):
        """Rows as the machine takes them, and what is known of their labels."""
        if y is None:
            rows = machine._validated(X)
        else:
            rows, y = machine._validated(X, with_unlabelled(y))
        validated(self, X, skip_check_array=True)  # names and number of the columns
        labels = label_priors(
            type(self).__name__,
            rows.shape[0],
            y,
            label_prior,
            sample_weight,
            machine.class_weight,
            self.class_prior,
        )
        if len(labels.classes) > 2 and self.method == "exact":
            raise ValueError(
                "method='exact' is for two classes, and y has "
                f"{len(labels.classes)}; use method='alternating'."
            )
        return rows, labels

    def _checked_parameters(self):
        step = v.check_positive("step", self.step)
        if step >= 2:
            raise ValueError(
                f"step={v.shown(self.step)} must be below 2; 1 goes all the way."
            )
        v.check_choice("method", self.method, _METHODS)
        n_init = v.check_count("n_init", self.n_init)
        max_rounds = v.check_count("max_rounds", self.max_rounds)
        return step, n_init, max_rounds, v.check_positive("tol", self.tol)

    def _store(self, machines, labels, state):
        """Set the fitted attributes from where a method has ended."""
        found = machines.store(state.machine)
        self.classes_ = labels.classes
        self.label_mean_ = labels.means
        self.label_mean_[labels.keep] = state.p
        if len(labels.classes) > 2:
            self.estimators_ = found
        else:
            self.estimator_ = found
        chosen = labels.chosen(self.label_mean_)
        decided = labels.chosen(state.machine.f)  # where label means are all alike
        kept = chosen[labels.keep]
        chosen[labels.keep] = np.where(kept < 0, decided, kept)
        self.transduction_ = labels.classes[np.maximum(chosen, 0)]
        self.objective_ = float(state.objective)
        self.objective_history_ = np.array(state.history)
        self.label_change_ = float(state.change)
        self.duality_gap_ = float(state.machine.gap)
        self.n_iter_ = int(state.n_iter)
        self.converged_ = state.status is Status.CONVERGED

    def _checked_rows(self, X):
        """Rows for the machine, which knows no names of columns."""
        check_is_fitted(self)
        check_fitted_classes(self.classes_)
        if len(getattr(X, "shape", (0, 0))) == 2:  # else the machine says what is wrong
            validated(self, X, reset=False, skip_check_array=True)
        return np.asarray(X) if hasattr(X, "columns") else X

    def decision_function(self, X: MatrixLike) -> FloatArray:
        """Decision values of the machine, positive for ``classes_[1]``; or of each one.

        Parameters
        ----------
        X : array-like or CSR (n, n_features)
            As `estimator` takes it.

        Returns
        -------
        ndarray (n,) or (n, n_classes)
            In margin units of `estimator`; with more than two classes those of each
            class against the others.
        """
        X = self._checked_rows(X)
        if len(self.classes_) > 2:
            machines = self._checked_machines()
            return np.column_stack([one.decision_function(X) for one in machines])
        found: FloatArray = self.estimator_.decision_function(X)
        return found

    def _checked_machines(self):
        """One fitted machine for each of several classes."""
        machines = vars(self).get("estimators_")
        if not (isinstance(machines, list) and len(machines) == len(self.classes_)):
            raise ValueError(
                f"the fitted model is inconsistent: estimators_={v.shown(machines)} "
                f"must hold a machine for each of the {len(self.classes_)} classes. "
                "Fit it again."
            )
        return machines

    def score(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> float:
        """Mean accuracy on the rows that have a label.

        Parameters
        ----------
        X : array-like or CSR (n_samples, n_features)
        y : array-like (n_samples,)
            Labels; rows of -1, None or NaN are left out.
        sample_weight : array-like (n_samples,), optional

        Returns
        -------
        float
        """
        labels = np.asarray(with_unlabelled(y))
        at = np.flatnonzero(np.array(labels != UNLABELLED, dtype=bool))
        if not len(at):
            raise ValueError("y holds no label, only -1 or missing ones; give some.")
        known = np.array(labels[at].tolist())
        weight = None if sample_weight is None else np.asarray(sample_weight)[at]
        found = np.asarray(self.predict(X))[at]
        return float(accuracy_score(known, found, sample_weight=weight))

    def predict(self, X: MatrixLike) -> NDArray[Any]:
        """Class labels.

        Parameters
        ----------
        X : array-like or CSR (n, n_features)
            As for :meth:`decision_function`.

        Returns
        -------
        ndarray (n,)
            Entries of ``classes_``.
        """
        return labels_of(self.decision_function(X), self.classes_)

    @available_if(_has_probabilities)
    def predict_proba(self, X: MatrixLike) -> FloatArray:
        """Probabilities of the classes, where `estimator` has them.

        Parameters
        ----------
        X : array-like or CSR (n, n_features)
            As for :meth:`decision_function`.

        Returns
        -------
        ndarray (n, 2)
            In the order of ``classes_``. Those of the training rows, with what their
            label priors say, are ``(1 + label_mean_) / 2``.

        Raises
        ------
        AttributeError
            If `estimator` has none.
        """
        found: FloatArray = self.estimator_.predict_proba(self._checked_rows(X))
        return found

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: MatrixLike) -> FloatArray:
        """Logarithms of the probabilities of the classes.

        Parameters
        ----------
        X : array-like or CSR (n, n_features)
            As for :meth:`decision_function`.

        Returns
        -------
        ndarray (n, 2)
            In the order of ``classes_``.

        Raises
        ------
        AttributeError
            As for :meth:`predict_proba`.
        """
        found: FloatArray = self.estimator_.predict_log_proba(self._checked_rows(X))
        return found
