"""Numbers of components and states: criteria, folds, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from refusals import refused
from sklearn.exceptions import ConvergenceWarning

from maxent._inputs.sequences import symbol_sequences
from maxent.families import Poisson
from maxent.models import (
    BayesNet,
    CategoricalHMM,
    FactorialHMM,
    GaussianHMM,
    HiddenMarkovModel,
    LinearDynamicalSystem,
    MarkovChain,
    Mixture,
    SwitchingLDS,
    select,
)

STAY = [[0.9, 0.1], [0.1, 0.9]]
counts = HiddenMarkovModel([0.5, 0.5], STAY, Poisson([2.0, 30.0]))
vectors = GaussianHMM([0.5, 0.5], STAY, [[0.0], [9.0]], [1.0, 1.0])
letters = CategoricalHMM([0.5, 0.5], STAY, [[0.9, 0.1], [0.1, 0.9]], "AB")
fast = {"tol": 1e-4, "n_init": 1}


def rows(rng):
    return rng.normal(size=(60, 2)) + np.repeat([[0.0], [9.0], [18.0]], 20, axis=0)


@pytest.mark.parametrize(
    "model, make, numbers, best, options",
    [
        (Mixture, rows, range(1, 5), 3, fast),
        (HiddenMarkovModel, counts, [1, 2, 3], 2, {"family": Poisson, **fast}),
        (GaussianHMM, vectors, [1, 2], 2, fast),
        (CategoricalHMM, letters, [1, 2], None, fast),
        (MarkovChain, letters, [0, 1, 2], None, {}),
        (LinearDynamicalSystem, vectors, [1, 2], None, {"tol": 1e-2}),
        (FactorialHMM, vectors, [(2,), (2, 2)], (2,), {"tol": 1e-2}),
    ],
)
@pytest.mark.parametrize("criterion", ["bic", "aic"])
def test_criteria_are_those_of_single_fits(
    model, make, numbers, best, options, criterion, rng
):
    X = make(rng) if callable(make) else make.sample(6, 60, rng)
    result = select(
        model, X, iter(numbers), criterion=criterion, random_state=3, **options
    )
    seed = {} if model is MarkovChain else {"random_state": 3}
    fits = [model.fit(X, **{model._size: n}, **seed, **options) for n in numbers]
    assert result.models == fits
    table = pd.DataFrame(result.table)
    values = [getattr(fit, criterion)(X) for fit in fits]
    np.testing.assert_array_equal(table[criterion], values)
    place = int(np.argmin(values))
    assert result.n == list(numbers)[place] and result.best == fits[place]
    if best is not None and criterion == "bic":
        assert result.n == best
    assert table["n_parameters"].tolist() == [fit.n_parameters for fit in fits]
    total = [fit.log_likelihood(X).sum() for fit in fits]
    np.testing.assert_allclose(table["log_likelihood"], total)
    assert table["converged"].all()


def test_held_out_rows_by_hand(rng):
    X, numbers = rows(rng), [1, 3]
    options = {"criterion": "cv", "cv": 3, "random_state": 5, **fast}
    for data in (X, pd.DataFrame(X), X.tolist()):
        result = select(Mixture, data, numbers, **options)
        folds = np.array_split(np.random.default_rng(5).permutation(len(X)), 3)
        for i, n in enumerate(numbers):
            scores = []
            for fold in folds:
                train = np.delete(X, fold, axis=0)
                fit = Mixture.fit(train, n_components=n, random_state=5, **fast)
                scores.append(fit.log_likelihood(X[fold]).mean())
            assert result.table["cv"][i] == pytest.approx(np.mean(scores))
            error = np.std(scores, ddof=1) / np.sqrt(3)
            assert result.table["standard_error"][i] == pytest.approx(error)
        assert result.n == 3


def test_held_out_sequences_by_hand(rng):
    X = letters.sample(7, [30, 5, 9, 40, 30, 20, 30], rng)
    X[2] = "A" * 8 + "C"  # a letter of one fold only
    options = {"criterion": "cv", "cv": 3, "random_state": 1, **fast}
    result = select(CategoricalHMM, X, [1, 2], **options)
    folds = np.array_split(np.random.default_rng(1).permutation(7), 3)
    scores = []
    for fold in folds:
        train = [x for i, x in enumerate(X) if i not in fold]
        fit = CategoricalHMM.fit(train, 2, alphabet="ABC", random_state=1, **fast)
        scores.append(fit.log_likelihood([X[i] for i in fold]).mean())
    assert result.table["cv"][1] == pytest.approx(np.mean(scores))
    found = symbol_sequences(X, alphabet="ABC")
    cut = select(CategoricalHMM, found.values, [1, 2], lengths=found.lengths, **options)
    np.testing.assert_allclose(cut.table["cv"], result.table["cv"])


def test_processes_change_nothing(rng):
    X = rows(rng)
    options = {"criterion": "cv", "cv": 2, "random_state": 0, **fast}
    one = select(Mixture, X, [1, 2], **options)
    assert select(Mixture, X, [1, 2], n_jobs=2, **options).table == one.table


def test_one_warning_names_the_numbers_that_did_not_converge(rng):
    X = rng.normal(size=(60, 2))
    with pytest.warns(ConvergenceWarning, match=r"Mixture with n=\[2, 3\]") as caught:
        result = select(Mixture, X, [1, 2, 3], max_iter=2, n_init=1, random_state=0)
    assert len(caught) == 1
    assert result.table["converged"] == [True, False, False]


def test_what_cannot_be_chosen_is_refused(rng):
    X = rows(rng)
    refused(lambda: select(Mixture, X, []), "numbers is empty")
    refused(lambda: select(Mixture, X, [1], criterion="icl"), "criterion='icl'")
    refused(lambda: select(X, range(1, 3), [1]), "select.Mixture, X")
    refused(lambda: select(BayesNet, X, [1]), "takes no number")
    refused(lambda: select(SwitchingLDS, X, [1]), "give n_regimes")
    for name in ("weights", "init", "n_components", "colour"):
        refused(lambda name=name: select(Mixture, X, [1], **{name: None}), name)
    refused(lambda: select(Mixture, X[:3], [1], criterion="cv"), "cv=5 folds of 3 rows")
    refused(
        lambda: select(CategoricalHMM, [[0, 1, 0]], [1], criterion="cv"),
        "cv=5 folds of 1 sequences .* criterion='bic'",
    )
    chains = [[0, 0, 0], [1, 1, 1], [0, 0]]
    refused(
        lambda: select(
            MarkovChain, chains, [1], criterion="cv", cv=3, smoothing=0, n_symbols=2
        ),
        "cv is infinite .* smoothing > 0",
    )
