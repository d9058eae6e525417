"""Hidden Markov models against enumeration, their own laws, and hmmlearn."""

import inspect
import pickle
import re
import warnings
from fractions import Fraction

import numpy as np
import pytest
from models.sequence_cases import (
    quiet,
    random_chain,
    random_codes,
    random_gaussian_hmm,
    random_hmm,
)
from oracles.sequence_models import log_emission_of, posteriors
from refusals import outcome, refusals, refused
from sklearn.exceptions import ConvergenceWarning

from maxent._inputs.sequences import symbol_sequences
from maxent.families import Categorical
from maxent.models import (
    CategoricalHMM,
    GaussianHMM,
    LinearDynamicalSystem,
    MarkovChain,
    Mixture,
    states_per_sequence,
)
from maxent.models.chains._many_chains import fit_tables

KINDS = ("full", "diagonal", "spherical")
sizes = pytest.mark.parametrize(
    "S, O, sparse", [(1, 2, False), (2, 3, False), (3, 2, True), (5, 4, False)]
)


def oracle(model, codes):
    rows = log_emission_of(model.emission.prob, codes)
    return posteriors(model.start, model.transition, rows)


@sizes
def test_likelihood_posterior_and_path_by_enumeration(S, O, sparse, rng):
    model = random_hmm(rng, S, O, sparse)
    sequences = random_codes(rng, 12, O, high=6)
    log_lik, posterior = model.log_likelihood(sequences), model.posterior(sequences)
    found, log_prob = model.viterbi(sequences)
    for i, codes in enumerate(sequences):
        value, gamma, _, _path, best = oracle(model, codes)
        # a sequence may be certain: log 1
        np.testing.assert_allclose(log_lik[i], value, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(posterior[i], gamma, atol=1e-12)
        np.testing.assert_allclose(log_prob[i], best, rtol=1e-12, atol=1e-14)
        rows = log_emission_of(model.emission.prob, codes)
        own = np.log(model.start[found[i][0]]) + rows[0, found[i][0]]
        for t in range(1, len(codes)):
            own += np.log(model.transition[found[i][t - 1], found[i][t]])
            own += rows[t, found[i][t]]
        np.testing.assert_allclose(own, best, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_gaussian_likelihood_and_posterior_by_enumeration(kind, rng):
    model = random_gaussian_hmm(rng, 3, 2, kind)
    assert model.covariance_type == kind
    sequences = [rng.normal(size=(n, 2)) for n in (1, 4, 6)]
    sequences[1][2] = np.nan
    for x, value, gamma in zip(
        sequences, model.log_likelihood(sequences), model.posterior(sequences)
    ):
        rows = model.emission.log_prob(np.nan_to_num(x)).T
        rows[np.isnan(x[:, 0])] = 0.0
        expected, posterior, *_ = posteriors(model.start, model.transition, rows)
        np.testing.assert_allclose(value, expected, rtol=1e-12)
        np.testing.assert_allclose(gamma, posterior, atol=1e-12)


def one_step_by_enumeration(model, sequences, weights, c):
    """EM step of all tables from expected counts; zeros get no pseudo-counts."""
    start = np.where(model.start > 0, c, 0.0)
    transition = np.where(model.transition > 0, c, 0.0)
    table = np.where(model.emission.prob > 0, c, 0.0)
    for codes, w in zip(sequences, weights):
        _, gamma, xi, *_ = oracle(model, codes)
        start += w * gamma[0]
        transition += w * xi
        for t, o in enumerate(codes):
            if o >= 0:
                table[:, o] += w * gamma[t]
    return [a / a.sum(axis=-1, keepdims=True) for a in (start, transition, table)]


@sizes
def test_em_step_by_enumeration(S, O, sparse, rng):
    model = random_hmm(rng, S, O, sparse)
    sequences = random_codes(rng, 11, O, low=2, high=6)
    weights = rng.uniform(0.1, 2.0, size=11)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        fit = CategoricalHMM.fit(
            sequences,
            init=model,
            weights=weights,
            smoothing=0.3,
            max_iter=1,
            tol=1e-300,
        )
    expected = one_step_by_enumeration(model, sequences, weights, 0.3)
    for found, own in zip((fit.start, fit.transition, fit.emission.prob), expected):
        np.testing.assert_allclose(found, own, atol=1e-12)


def worst_step(fit):
    """Least gain of an EM step, in units of 1 + |objective|."""
    history = fit.fit_result.objective_history
    return np.min(np.diff(history) / (1 + np.abs(history[1:])), initial=np.inf)


def em_problems(rng, n):
    """Fits of random small problems of both kinds, with and without smoothing."""
    for k in range(n):
        S, c = int(rng.integers(1, 5)), float(rng.choice([0.0, 0.01, 1.0]))
        more = {"n_init": 1, "max_iter": 60, "tol": 1e-13, "random_state": k}
        if k % 2:
            d, kind = int(rng.integers(1, 3)), KINDS[k // 2 % 3]
            X = [rng.normal(size=(int(rng.integers(2, 30)), d)) for _ in range(4)]
            X[0][0] = np.nan
            yield quiet(
                GaussianHMM.fit,
                X,
                S,
                covariance_type=kind,
                smoothing=max(c, 0.01),
                **more,
            )
        else:
            X = random_codes(rng, int(rng.integers(1, 12)), 3, high=30)
            yield quiet(CategoricalHMM.fit, X, S, n_symbols=3, smoothing=c, **more)


def test_converged_fits_are_fixed_points(rng):
    X = random_hmm(rng, 2, 3).sample(30, 20, rng)
    # states that are nearly alike take EM some thousand steps
    fit = CategoricalHMM.fit(X, 2, random_state=1, max_iter=20_000)
    result = fit.fit_result
    assert result.converged and result.residual < 0.01
    assert result.objective == max(result.objectives)
    np.testing.assert_allclose(result.objective_history[-1], result.objective)
    again = CategoricalHMM.fit(X, init=fit).fit_result
    assert again.n_iter == 1
    gain = again.objective - result.objective
    assert 0 <= gain <= 1e-8 * (1 + abs(result.objective))  # the default tol


def test_weights_are_repetitions(rng):
    model = random_hmm(rng, 2, 3)
    X = random_codes(rng, 5, 3, low=2)
    options = {"init": model, "max_iter": 4, "tol": 1e-300}
    with pytest.warns(ConvergenceWarning):
        a = CategoricalHMM.fit(X, weights=[2, 1, 0, 1, 1], **options)
    with pytest.warns(ConvergenceWarning):
        b = CategoricalHMM.fit([X[0], X[0], X[1], X[3], X[4]], **options)
    np.testing.assert_allclose(a.transition, b.transition, atol=1e-12)
    np.testing.assert_allclose(a.emission.prob, b.emission.prob, atol=1e-12)


def test_order_of_sequences_and_of_states_does_not_matter(rng):
    model = random_hmm(rng, 3, 4)
    X = random_codes(rng, 20, 4)
    value = model.log_likelihood(X)
    np.testing.assert_allclose(model.log_likelihood(X[::-1])[::-1], value, rtol=1e-13)
    k = rng.permutation(3)
    other = CategoricalHMM(model.start[k], model.transition[k][:, k], model.emission[k])
    np.testing.assert_allclose(other.log_likelihood(X), value, rtol=1e-12)


def test_missing_observations_are_summed_over(rng):
    model = random_hmm(rng, 3, 3)
    codes = [0, -1, 2, -1]
    every = [[0, a, 2, b] for a in range(3) for b in range(3)]
    total = np.logaddexp.reduce(model.log_likelihood(every))
    np.testing.assert_allclose(model.log_likelihood([codes]), total, rtol=1e-12)


def test_draws_have_the_frequencies_of_the_model(rng):
    model = random_hmm(rng, 2, 3)
    X, Z = model.sample(4000, 3, rng, return_states=True)
    pairs = np.zeros((2, 2))
    np.add.at(pairs, tuple(np.array(Z)[:, 1:].T), 1)
    law = model.start @ model.transition
    law = law[:, None] * model.transition
    assert np.abs(pairs / 4000 - law).max() < 6 * 0.5 / np.sqrt(4000)
    for k in range(2):
        own = np.array(X)[np.array(Z) == k]
        share = np.bincount(own, minlength=3) / max(len(own), 1)
        spread = 6 * 0.5 / np.sqrt(max(len(own), 1))
        assert np.abs(share - model.emission.prob[k]).max() < spread
    assert [len(x) for x in model.sample(3, [1, 5, 2], 0)] == [1, 5, 2]
    one, two = model.sample(2, 9, 5), model.sample(2, 9, 5)
    assert all(np.array_equal(a, b) for a, b in zip(one, two))


def test_fit_finds_the_model_that_drew_the_data(rng):
    truth = CategoricalHMM(
        [0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], [[0.8, 0.1, 0.1], [0.1, 0.1, 0.8]]
    )
    X = truth.sample(300, 60, rng)
    fit = CategoricalHMM.fit(X, 2, random_state=0)
    assert fit.log_likelihood(X).sum() > truth.log_likelihood(X).sum() - 1.0
    k = np.argsort(-fit.emission.prob[:, 0])
    assert np.abs(fit.transition[k][:, k] - truth.transition).max() < 0.05


def test_strings_and_files(tmp_path, rng):
    strings = ["ACGTAC", "GGNTA", "TTTT"]
    fit = CategoricalHMM.fit(strings, 2, alphabet="ACGT", missing="N", random_state=0)
    codes = [["ACGT".find(a) for a in s] for s in strings]
    as_codes = CategoricalHMM(fit.start, fit.transition, fit.emission)
    np.testing.assert_array_equal(
        fit.log_likelihood(strings), as_codes.log_likelihood(codes)
    )
    path = tmp_path / "some.fasta"
    path.write_text(">one\nACG\nTAC\n>two\nGGNTA\n>three\nTTTT\n")
    np.testing.assert_array_equal(fit.log_likelihood(path), fit.log_likelihood(strings))
    assert set("".join(fit.sample(3, 10, 0))) <= set("ACGT")
    X, lengths = np.concatenate(codes), [6, 5, 4]
    np.testing.assert_array_equal(
        as_codes.log_likelihood(X[:, None], lengths), fit.log_likelihood(strings)
    )


def test_unvisited_states_keep_their_rows():
    init = CategoricalHMM(
        [1.0, 0.0], [[1.0, 0.0], [0.3, 0.7]], [[0.5, 0.5], [0.2, 0.8]]
    )
    fit = CategoricalHMM.fit([[0, 1, 1]], init=init, smoothing=0.0)
    np.testing.assert_array_equal(fit.transition[1], [0.3, 0.7])
    np.testing.assert_array_equal(fit.emission.prob[1], [0.2, 0.8])
    gaussian = GaussianHMM([1.0, 0.0], init.transition, [[0.0], [9.0]], [1.0, 1.0])
    fit = GaussianHMM.fit([[0.0, 1.0, 3.0]], init=gaussian, smoothing=0.0)
    assert fit.mean[1, 0] == 9.0 and fit.cov[1] == 1.0


@pytest.mark.parametrize("kind", KINDS)
def test_a_state_of_one_row_keeps_a_share_of_the_spread_within_groups(kind, rng):
    X = np.concatenate([rng.normal(size=(30, 2)), [[1000.0, 1000.0]]])
    fit = GaussianHMM.fit([X], 2, covariance_type=kind, random_state=0)
    within = 30 / 31 * np.cov(X[:30].T, bias=True)
    if kind != "full":
        within = np.diag(within)
    if kind == "spherical":
        within = within.mean()
    alone = int(fit.mean[:, 0].argmax())
    np.testing.assert_allclose(fit.mean[alone], [1000.0, 1000.0])
    count = 0.01 * (4 / 3 if kind == "full" else 1.0)
    np.testing.assert_allclose(fit.cov[alone], count / (1 + count) * within, rtol=1e-6)


@pytest.mark.parametrize("kind", [CategoricalHMM, GaussianHMM])
def test_fit_many_has_the_defaults_of_fit(kind):
    one = inspect.signature(kind.fit).parameters
    for name, many in inspect.signature(kind.fit_many).parameters.items():
        assert name not in one or many.default == one[name].default, name


def test_fit_many_fits_every_sequence_with_its_own_number_of_states(rng):
    X = random_codes(rng, 6, 3, low=30, high=60, missing=0.0) + [
        rng.integers(0, 3, size=400)
    ]
    one = CategoricalHMM.fit_many(X, random_state=0, tol=1e-6, zeta=0.2)
    assert [m.n_states for m in one] == [states_per_sequence(len(x), 3, 0.2) for x in X]
    assert all(m.n_symbols == 3 and m.fit_result.converged for m in one)
    again = CategoricalHMM.fit_many(X, random_state=0, tol=1e-6, zeta=0.2, n_jobs=2)
    assert one == again
    assert [m.fit_result.objective for m in again] == [
        m.fit_result.objective for m in one
    ]
    with pytest.warns(ConvergenceWarning, match="7 of 7"):
        CategoricalHMM.fit_many(X, max_iter=1, tol=1e-15, random_state=0)


def test_one_seed_fits_each_sequence_as_if_it_were_alone(rng):
    X = random_codes(rng, 5, 3, low=20, high=40)
    options = {"n_symbols": 3, "tol": 1e-6, "zeta": 0.2, "random_state": 4}
    many = CategoricalHMM.fit_many(X, **options)
    turned = CategoricalHMM.fit_many(X[::-1], **options)[::-1]
    single = [CategoricalHMM.fit([x], **options) for x in X]
    for found, *others in zip(many, turned, single):
        for one in others:
            a, b = found.emission.prob, one.emission.prob
            np.testing.assert_allclose(a, b, atol=1e-6)
            np.testing.assert_allclose(found.transition, one.transition, atol=1e-6)
    options["random_state"] = np.random.default_rng(4)  # a stream for each
    one, other = CategoricalHMM.fit_many([X[0], X[0]], **options)
    assert one != other
    V = [rng.normal(size=(n, 2)) for n in (20, 30)]
    options = {"n_states": 2, "tol": 1e-3, "random_state": 4}
    for x, found in zip(V, GaussianHMM.fit_many(V, **options)):
        assert found == GaussianHMM.fit([x], **options)


def test_fit_many_takes_one_array_with_lengths(rng):
    x = rng.normal(size=(30, 2))
    options = {"n_states": 2, "tol": 1e-2, "random_state": 0}
    many = GaussianHMM.fit_many(x, lengths=[12, 18], **options)
    assert many == GaussianHMM.fit_many([x[:12], x[12:]], **options)


def test_a_datum_without_observations_is_named(rng):
    X = [rng.normal(size=(9, 1)), np.full((4, 1), np.nan)]
    with pytest.raises(ValueError, match=r"data\[1\]: every row is missing"):
        LinearDynamicalSystem.fit_many(X, n_states=1, max_iter=2, tol=1.0)


def test_bad_emissions_are_named():
    even = [[0.5, 0.5], [0.5, 0.5]]
    with pytest.raises(ValueError, match=r"emission\[0\] sums to 1.1"):
        CategoricalHMM([0.5, 0.5], even, [[0.5, 0.6], [0.5, 0.5]])
    with pytest.raises(ValueError, match=r"pass variances \(n_states, d\)") as error:
        GaussianHMM([1.0], [[1.0]], [[0.0, 0.0]], [[[1.0, 2.0], [2.0, 1.0]]])
    assert "DiagonalGaussian" not in str(error.value)


def test_fit_many_of_vectors_does_not_depend_on_the_processes(rng):
    X = [rng.normal(size=(n, 2)) for n in (20, 35, 50)]
    options = {"n_states": 2, "tol": 1e-6, "random_state": 3}
    one = GaussianHMM.fit_many(X, **options)
    assert [m.n_features for m in one] == [2, 2, 2]
    assert one == GaussianHMM.fit_many(X, n_jobs=2, **options)


@pytest.mark.parametrize("sparse", [False, True])
def test_many_fits_at_once_are_the_fits_one_by_one(sparse, rng):
    X = symbol_sequences(random_codes(rng, 11, 3, low=2, high=40), n_symbols=3)
    starts = [random_hmm(rng, 1 + i % 3, 3, sparse and i % 3) for i in range(11)]
    points = [[(m.start, m.transition, m.emission.prob)] for m in starts]
    many = fit_tables(X, points, 0.1, 1e-7, 300, 1)
    for codes, init, (point, result) in zip(X, starts, many):
        one = quiet(
            CategoricalHMM.fit,
            [codes],
            init=init,
            smoothing=0.1,
            tol=1e-7,
            max_iter=300,
        )
        for a, b in zip(point, (one.start, one.transition, one.emission.prob)):
            np.testing.assert_allclose(a, b, atol=1e-9)
        assert result.n_iter == one.fit_result.n_iter
        assert result.status == one.fit_result.status
        np.testing.assert_allclose(
            result.history, one.fit_result.history, rtol=1e-6, atol=1e-9
        )
        np.testing.assert_allclose(
            result.residual, one.fit_result.residual, rtol=1e-3, atol=1e-9
        )


def test_fits_that_take_turns_in_a_vector_are_the_fits_one_by_one(rng):
    """More models than vectors: one that ends leaves its lane to the next."""
    X = random_codes(rng, 600, 3, low=1, high=30)
    options = {"n_states": 2, "n_init": 1, "smoothing": 0.1, "random_state": 3}
    many = CategoricalHMM.fit_many(X, n_jobs=1, **options)
    assert len({model.fit_result.n_iter for model in many}) > 20
    for codes, model in list(zip(X, many))[::9]:
        one = CategoricalHMM.fit([codes], n_symbols=3, **options)
        assert model.fit_result.n_iter == one.fit_result.n_iter
        np.testing.assert_allclose(model.transition, one.transition, atol=1e-9)
        np.testing.assert_allclose(model.emission.prob, one.emission.prob, atol=1e-9)
    again = CategoricalHMM.fit_many(X, n_jobs=2, **options)
    for model, other in zip(many, again):
        assert model.transition.tobytes() == other.transition.tobytes()
        assert model.fit_result == other.fit_result


@pytest.mark.parametrize("shared", [False, True])
def test_fit_many_from_given_starts_is_fit_from_each(shared, rng):
    X = random_codes(rng, 7, 3, low=2, high=40)
    starts = [random_hmm(rng, 1 + i % 3, 3) for i in range(7)]
    options = {"smoothing": 0.1, "tol": 1e-7, "max_iter": 5000}
    init = starts[2] if shared else starts
    many = CategoricalHMM.fit_many(X, init=init, **options)
    for x, start, found in zip(X, starts, many):
        one = CategoricalHMM.fit([x], init=init if shared else start, **options)
        assert found.n_states == one.n_states
        np.testing.assert_allclose(found.transition, one.transition, atol=1e-9)
        np.testing.assert_allclose(found.emission.prob, one.emission.prob, atol=1e-9)
        assert len(found.fit_result.objectives) == 1


def test_fit_many_of_vectors_takes_a_start_for_each(rng):
    X = [rng.normal(size=(n, 2)) for n in (20, 35, 50)]
    starts = GaussianHMM.fit_many(X, n_states=2, max_iter=3, tol=1.0, random_state=0)
    options = {"tol": 1e-6, "smoothing": 0.1}
    many = GaussianHMM.fit_many(X, init=starts, **options)
    one_start = GaussianHMM.fit_many(X, init=starts[0], **options)
    for x, start, found, other in zip(X, starts, many, one_start):
        assert found == GaussianHMM.fit([x], init=start, **options)
        assert other == GaussianHMM.fit([x], init=starts[0], **options)


def test_starts_that_do_not_fit_the_data_are_named(rng):
    init = random_hmm(rng, 2, 3)
    with pytest.raises(ValueError, match="init has 1 starts for 2 data"):
        CategoricalHMM.fit_many([[0, 1], [2, 1]], init=[init])
    with pytest.raises(ValueError, match="init has 0 starts"):
        CategoricalHMM.fit_many([[0, 1], [2, 1]], init=[])
    with pytest.raises(ValueError, match="init has 4 symbols, the data 3"):
        CategoricalHMM.fit_many([[0, 1], [2, 1]], init=[init, random_hmm(rng, 2, 4)])
    with pytest.raises(ValueError, match="init has 3 symbols, the data 2"):
        CategoricalHMM.fit(["AB"], init=init, alphabet="AB")
    with pytest.raises(TypeError, match="must be a CategoricalHMM"):
        CategoricalHMM.fit_many([[0, 1], [2, 1]], init=[init, "uniform"])
    with pytest.raises(ValueError, match="init has 3 starts for 2 data"):
        GaussianHMM.fit_many([[[0.0], [1.0]]] * 2, init=[None] * 3)


def test_many_fits_of_sequences_that_underflow(rng):
    # 0 1 0 1 ... from states that hardly ever show these symbols in this order
    init = [([1.0, 0.0], [[0.0, 1.0], [1.0, 0.0]], [[1e-200, 1.0], [1.0, 1e-200]])]
    init = [tuple(np.array(part) for part in point) for point in init]
    X = symbol_sequences([[0, 1] * 5, [0, 0, 1]], n_symbols=2)
    many = fit_tables(X, [init, init], 0.0, 1e-12, 5, 1)
    for codes, (_, result) in zip(X, many):
        one = quiet(
            CategoricalHMM.fit,
            [codes],
            init=CategoricalHMM(*init[0]),
            smoothing=0.0,
            tol=1e-12,
            max_iter=5,
        )
        np.testing.assert_allclose(
            result.objective, one.fit_result.objective, rtol=1e-12
        )


@pytest.mark.parametrize("size", [1e160, -1e300])
def test_values_whose_squares_overflow_are_named(size, rng):
    model = random_gaussian_hmm(rng, 2, 2)
    x = np.zeros((4, 2))
    x[2, 1], x[1, 0] = size, np.nan
    for call in (model.log_likelihood, model.viterbi, model.posterior):
        refused(
            lambda call=call: call([x[:2], x]), r"sequences\[1\]\[2\].*beyond 1e.150"
        )


def test_callbacks_end_fits_without_a_warning(rng):
    X, codes = rng.normal(size=(60, 1)), rng.integers(0, 3, size=60)
    fits = [
        lambda **o: GaussianHMM.fit([X], 2, **o),
        lambda **o: GaussianHMM.fit_many([X], n_states=2, **o)[0],
        lambda **o: CategoricalHMM.fit([codes], 2, **o),
        lambda **o: Mixture.fit(X, n_components=2, **o),
    ]
    for fit in fits:
        seen = []

        def end(*report, seen=seen):
            seen.append(report)
            return report[0] == 2

        result = outcome(lambda fit=fit, end=end: fit(callback=end)).fit_result
        # runs may take their steps in turn; then the best of all is returned
        numbers = [n for n, _, _ in seen]
        assert result.status.value == "stopped"
        assert numbers.index(2) == len(seen) - 1 and numbers == sorted(numbers)
        assert result.objective == max(value for _, value, _ in seen)
        runs = numbers.count(0)
        assert len(result.objectives) == runs and result.n_iter in (1, 2)
        if runs == 1:
            assert [value for _, value, _ in seen] == result.trace


def test_states_of_the_paper():
    for zeta in ("0.1", "0.7", "0.3", "1.1", "2.0", "1e-05"):
        for O in (1, 2, 4, 20):
            for T in (*range(1, 400), 1290, 10**6 + 1):
                M = states_per_sequence(T, O, float(zeta))
                limit = Fraction(zeta) * T
                assert M >= 2 and limit < (M - 1) * (M + O + 1)
                assert M == 2 or limit >= (M - 2) * (M + O)
    assert states_per_sequence(10**4, 4) == 30
    assert states_per_sequence(1290, 20, 0.7) == 23  # 21 * 43 is 0.7 * 1290
    assert states_per_sequence(1290, 20, np.float64(0.7)) == 23


def test_values_are_immutable_equal_and_pickled(rng):
    for model in (random_hmm(rng, 2, 3), random_gaussian_hmm(rng, 2, 2)):
        again = pickle.loads(pickle.dumps(model))
        assert again == model and hash(again) == hash(model)
        assert type(model).from_spec(model.get_spec()) == model
        with pytest.raises(AttributeError, match="immutable"):
            model.start = 0
        with pytest.raises(ValueError, match="read-only"):
            model.transition[0, 0] = 1.0
        assert repr(model).startswith(type(model).__name__ + "(start=")
    with pytest.warns(ConvergenceWarning):
        fit = CategoricalHMM.fit([[0, 1, 1, 0]], 2, max_iter=1, random_state=0)
    assert pickle.loads(pickle.dumps(fit)).fit_result == fit.fit_result


HALF = [[0.5, 0.5], [0.5, 0.5]]
WORDS = np.array([["go", "stop"], ["stop", "go"]])
FLAT = [[[0.0], [1.0]], [[7.0], [np.nan], [7.0]]] * 2


test_bad_input_is_named = refusals(
    [
        (lambda: CategoricalHMM([0.5, 0.4], HALF, HALF), "start sums to 0.9"),
        (lambda: CategoricalHMM([1.0], HALF, HALF), r"start has shape \(1,\)"),
        (lambda: CategoricalHMM([0.5, 0.5], HALF, [[1.0]]), "emission has shape"),
        (lambda: CategoricalHMM([0.5, 0.5], HALF, HALF, "ABC"), "alphabet='ABC'"),
        (lambda: GaussianHMM([0.5, 0.5], HALF, [[0.0], [1.0]], 1.0), "cov has shape"),
        (lambda: GaussianHMM([0.5, 0.5], HALF, [0.0, 1.0], [1, 1]), "mean has shape"),
        (lambda: CategoricalHMM.fit([[0, 1]], 0), "n_states=0"),
        (lambda: CategoricalHMM.fit([[0, 1]], 2, smoothing=-1), "smoothing=-1"),
        (lambda: CategoricalHMM.fit([[0, 1]], 2, weights=[0.0]), "weights"),
        (lambda: CategoricalHMM.fit([], 2), "there is no sequence"),
        (lambda: CategoricalHMM.fit([[0, 1], []], 2), r"sequences\[1\] is empty"),
        (lambda: CategoricalHMM.fit(["A", "C"], 2), "alphabet='AC'"),
        (
            lambda: CategoricalHMM.fit(["AC", "AXC"], 2, alphabet="AC"),
            r"sequences\[1\]\[1\]='X'",
        ),
        (lambda: CategoricalHMM.fit([[0, 0.5]], 2), r"sequences\[0\]\[1\]=0.5"),
        (lambda: CategoricalHMM.fit([[0, 1]], 2, init=3), "init=3"),
        (
            lambda: CategoricalHMM([0.5, 0.5], HALF, HALF).log_likelihood([[0, 2]]),
            r"sequences\[0\]\[1\]=2",
        ),
        (lambda: CategoricalHMM([1.0], [[1.0]], [[1.0, 0.0]]).posterior([[1]]), "prob"),
        (lambda: GaussianHMM.fit([[[0.0, np.nan]]], 1), "column 1"),
        (lambda: GaussianHMM.fit([[[1.0], [1.0]]], 1), "column 0"),
        (lambda: GaussianHMM.fit([[[np.nan]]], 1), "missing"),
        (
            lambda: GaussianHMM.fit_many(FLAT, n_states=2),
            r"data\[1\].*: 1, 3 \(2 of 4\)\.",
        ),
        (lambda: GaussianHMM.fit([np.arange(9000.0)]), "n_states=None means 29 states"),
        (lambda: CategoricalHMM.fit([[0, 1] * 3000]), "give n_states, such as 3"),
        (lambda: CategoricalHMM.fit(WORDS, 2), "has text.*number its words.*codes ="),
        (lambda: CategoricalHMM.fit(WORDS.tolist(), 2), "has text.*number its words"),
        (lambda: CategoricalHMM.fit([[0.5, 1.5]], 2), "is no code.*GaussianHMM"),
        (lambda: CategoricalHMM.fit([[0.0, np.inf]], 2), "inf is no code.*observation"),
        (lambda: GaussianHMM.fit([[[1.0], [2.0]]], 1, callback=3), "callback=3"),
        (
            lambda: GaussianHMM.fit([[[1.0], [2.0]]], 1, covariance_type="equal"),
            "covariance_type='equal'",
        ),
        (lambda: CategoricalHMM.from_hmmlearn(3), "model=3"),
    ]
)


def test_long_sequences_have_twenty_states_in_fits_of_many():
    short = {"max_iter": 1, "n_init": 1, "random_state": 0}
    with pytest.warns(ConvergenceWarning):
        words = CategoricalHMM.fit_many([[0, 1], [0, 1] * 3000], **short)
    with pytest.warns(ConvergenceWarning):
        series = GaussianHMM.fit_many([np.arange(9000.0)], **short)
    assert [m.n_states for m in words + series] == [2, 20, 20]


def test_impossible_data_end_a_fit_with_a_reason():
    init = CategoricalHMM([1.0], [[1.0]], [[1.0, 0.0]])
    with pytest.raises(FloatingPointError, match="probability zero"):
        CategoricalHMM.fit([[0, 1]], init=init, smoothing=0.0)
    assert init.log_likelihood([[0, 1], [0]]).tolist() == [-np.inf, 0.0]


# -- hmmlearn ------------------------------------------------------------------------
def refit(h, X, lengths, n_iter):
    """Fit of hmmlearn from the parameters that it has, without priors."""
    h.init_params, h.covars_prior, h.min_covar = "", 0.0, 0.0
    h.n_iter = h.monitor_.n_iter = n_iter
    h.tol = h.monitor_.tol = -np.inf
    return h.fit(X, lengths)


@pytest.mark.parametrize("n_iter", [1, 30])
def test_categorical_fit_equals_hmmlearn(n_iter, rng):
    pytest.importorskip("hmmlearn")
    X = random_hmm(rng, 3, 5).sample(20, rng.integers(20, 60, size=20), rng)
    init = random_hmm(rng, 3, 5)
    init = CategoricalHMM.from_hmmlearn(init.to_hmmlearn())
    flat, lengths = np.concatenate(X)[:, None], [len(x) for x in X]
    peer = refit(init.to_hmmlearn(), flat, lengths, n_iter)
    # well separated states may converge to the last bit within so many steps
    ours = outcome(
        lambda: CategoricalHMM.fit(
            X, init=init, smoothing=0, max_iter=n_iter, tol=1e-300
        )
    )
    np.testing.assert_allclose(
        ours.log_likelihood(X).sum(), peer.score(flat, lengths), rtol=1e-10
    )
    assert CategoricalHMM.from_hmmlearn(ours.to_hmmlearn()) == ours


@pytest.mark.parametrize("kind", KINDS)
def test_gaussian_fit_equals_hmmlearn(kind, rng):
    pytest.importorskip("hmmlearn")
    truth = random_gaussian_hmm(rng, 3, 2, kind)
    X = truth.sample(20, 30, rng)
    # near the truth: from elsewhere a state may shrink to one observation
    init = GaussianHMM(
        *random_chain(rng, 3), truth.mean + 0.3 * rng.normal(size=(3, 2)), truth.cov
    )
    flat, lengths = np.concatenate(X), [30] * 20
    peer = refit(init.to_hmmlearn(), flat, lengths, 15)
    ours = outcome(
        lambda: GaussianHMM.fit(X, init=init, smoothing=0, max_iter=15, tol=1e-300)
    )
    np.testing.assert_allclose(
        ours.log_likelihood(X).sum(), peer.score(flat, lengths), rtol=1e-9
    )
    assert GaussianHMM.from_hmmlearn(ours.to_hmmlearn()) == ours


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("kind", ["spherical", "diag", "full", "tied"])
def test_fitted_gaussian_peers_are_taken_over(kind, d, rng):
    hmm = pytest.importorskip("hmmlearn.hmm")
    X = random_gaussian_hmm(rng, 2, d).sample(1, 60, rng)[0]
    peer = hmm.GaussianHMM(2, covariance_type=kind, random_state=0).fit(X)
    ours = GaussianHMM.from_hmmlearn(peer)
    assert ours.covariance_type == {"diag": "diagonal"}.get(kind, kind)
    np.testing.assert_allclose(ours.log_likelihood([X])[0], peer.score(X), rtol=1e-10)
    np.testing.assert_allclose(ours.to_hmmlearn().score(X), peer.score(X), rtol=1e-10)


def test_states_without_batch_are_refused():
    refused(
        lambda: CategoricalHMM([1.0], [[1.0]], Categorical([0.5, 0.5])),
        "emission has shape",
    )


def test_states_that_differ_from_those_of_the_start_are_refused(rng):
    model = random_hmm(rng, 2, 3)
    X = model.sample(5, 12, rng)
    with pytest.raises(ValueError, match="n_states=3 but init has 2 states"):
        CategoricalHMM.fit(X, 3, init=model)
    series = [rng.normal(size=(20, 1)) for _ in range(3)]
    start = GaussianHMM.fit(series, 2, random_state=0, tol=1e-2)
    with pytest.raises(ValueError, match="n_states=3 but init has 2 states"):
        GaussianHMM.fit(series, 3, init=start)


def test_fits_warn_where_no_sequence_has_two_steps(rng):
    letters = list("aaaabbbb" * 5)
    rows = [rng.normal(size=(1, 2)) for _ in letters]
    options = {"random_state": 0, "max_iter": 30, "n_init": 1}
    letter = {"alphabet": "ab", **options}
    word = r"none of the 40 sequences has more than 1 step, .*join\(X\)"
    for call in (
        lambda: CategoricalHMM.fit(letters, 2, **letter),
        lambda: CategoricalHMM.fit_many(letters, n_states=2, **letter),
        lambda: CategoricalHMM.fit([[0]] * 40, 2, **options),
        lambda: GaussianHMM.fit(rows, 2, **options),
        lambda: GaussianHMM.fit(np.concatenate(rows), 2, lengths=[1] * 40, **options),
        lambda: MarkovChain.fit(letters, alphabet="ab"),
        lambda: MarkovChain.fit_many(letters, alphabet="ab"),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
        caught = [w for w in caught if w.category is UserWarning]
        assert len(caught) == 1 and caught[0].filename == __file__
        assert re.search(word, str(caught[0].message))
    with pytest.warns(UserWarning, match="more than 2 steps.*lower order"):
        MarkovChain.fit(["ab", "ba"], 2)
    # one longer sequence, one state, no memory, or a start: there is nothing to say
    one = CategoricalHMM.fit(["".join(letters)], 2, **options)
    for call in (
        lambda: CategoricalHMM.fit([*letters, "ab"], 2, **letter),
        lambda: CategoricalHMM.fit(letters, 1, **letter),
        lambda: CategoricalHMM.fit(letters, init=one),
        lambda: GaussianHMM.fit([np.concatenate(rows)], 2, **options),
        lambda: GaussianHMM.fit(rows, 1, **options),
        lambda: MarkovChain.fit(letters, 0, alphabet="ab"),
    ):
        outcome(call)


def test_models_of_hmmlearn_of_other_classes_are_named():
    class GMMHMM:
        means_ = np.zeros((2, 1, 1))

    class MultinomialHMM:
        emissionprob_ = np.full((2, 2), 0.5)

    refused(lambda: GaussianHMM.from_hmmlearn(GMMHMM()), "of class GMMHMM; .*Gaussian")
    refused(
        lambda: CategoricalHMM.from_hmmlearn(MultinomialHMM()),
        "of class MultinomialHMM; .*CategoricalHMM",
    )
    empty = type("GaussianHMM", (), {})()
    refused(lambda: GaussianHMM.from_hmmlearn(empty), "fitted first; it has no means_")
