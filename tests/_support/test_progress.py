"""Progress of fits: lines of `verbose`, and scikit-learn's callbacks."""

import functools
import logging
import os
import pickle
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest
from _support import recorders
from _support.recorders import Recorder, Watcher, check_nested, events
from processes import run
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from maxent import (
    LMERBM,
    LatentMaxEnt,
    LMEBoltzmannMachine,
    LMEDirichletMixture,
    LMEGaussianMixture,
    M3EClassifier,
    M3EGridClassifier,
    M3EModel,
    M3EMotifClassifier,
    MaxEntClassifier,
    MEDBayesNetClassifier,
    MEDClassifier,
    MEDFeatureSelector,
    MEDGaussianClassifier,
    MEDGenerativeClassifier,
    MEDOutlierDetector,
    MEDPartialLabelClassifier,
    MEDRegressionSelector,
    MEDRegressor,
    MEDSequenceOutlierDetector,
    MEDTreeClassifier,
)
from maxent._support import progress as module
from maxent._support.registry import CLASSES
from maxent._support.results import Report
from maxent.discrimination import (
    ExponentialMargin,
    LatentMixture,
    solve_blocks,
    solve_dual,
    solve_linear_dual,
)
from maxent.families import DirichletProduct
from maxent.latent import TrigramTopicModel, _stationary_points
from maxent.models.em import maximize_by_em

_rng = np.random.default_rng(5)
REAL = _rng.normal(size=(90, 3))
CODES = _rng.integers(0, 3, size=(90, 4))
TWO = (REAL[:, 0] + 0.5 * _rng.normal(size=90) > 0).astype(int)
THREE = _rng.integers(0, 3, 90)
SHARES = _rng.dirichlet([2.0, 3.0, 4.0], size=60)
BITS = np.abs(
    np.repeat(_rng.integers(0, 2, size=(60, 1)), 5, axis=1)
    - (_rng.random((60, 5)) < 0.1)
)
COINS = np.zeros((4, 2, 3))
COINS[:, 0, 0] = 1.0
COINS[:, 0, 1] = COINS[:, 1, 2] = np.arange(4.0)
HEADS = _rng.permutation(np.repeat([0, 1, 2, 3], [30, 20, 20, 30]))
WORDS = [list(np.array(list("abcde"))[_rng.integers(0, 5, 30)]) for _ in range(8)]
BAGS = _rng.normal(size=(40, 3, 2))
LABELS = np.arange(40) % 2
BAGS[LABELS == 1, 1] += 2.0
IMAGES = 0.5 * _rng.normal(size=(40, 4, 4))
IMAGES[LABELS == 1, 1:3, 1:3] += [[2.0, -2.0], [-2.0, 2.0]]
STRANDS = ["".join(row) for row in _rng.choice(list("ACGT"), size=(40, 12))]
STRANDS = [s[:4] + "TATA" + s[8:] if y else s for s, y in zip(STRANDS, LABELS)]
JOINT = np.zeros((40, 2, 3, 4))
JOINT[:, 0, :, :2] = JOINT[:, 1, :, 2:] = BAGS

# estimator, rows, labels; each takes two iterations or more
WORK = {
    "LMEBoltzmannMachine": (
        LMEBoltzmannMachine(1, n_init=2, random_state=0),
        BITS,
        None,
    ),
    "LMEDirichletMixture": (
        LMEDirichletMixture(2, n_init=2, random_state=0),
        SHARES,
        None,
    ),
    "LMEGaussianMixture": (
        LMEGaussianMixture(2, n_init=2, tol=1e-4, random_state=0),
        REAL,
        None,
    ),
    "LMERBM": (LMERBM(1, n_init=2, random_state=0), BITS, None),
    "LatentMaxEnt": (LatentMaxEnt(COINS, n_init=12, random_state=0), HEADS, None),
    "M3EClassifier": (M3EClassifier(C=10.0, n_init=2, random_state=0), BAGS, LABELS),
    "M3EGridClassifier": (
        M3EGridClassifier((2, 2), C=10.0, n_init=2, random_state=0),
        IMAGES,
        LABELS,
    ),
    "M3EModel": (M3EModel(alpha=2.0, C=10.0, init="path"), JOINT, LABELS),
    "M3EMotifClassifier": (
        M3EMotifClassifier(4, alpha=2.0, C=10.0, n_init=2, random_state=0),
        STRANDS,
        LABELS,
    ),
    "MEDBayesNetClassifier": (MEDBayesNetClassifier(level=3.0), CODES, THREE),
    "MEDClassifier": (MEDClassifier(C=10.0, solver="interior"), REAL, TWO),
    "MEDFeatureSelector": (MEDFeatureSelector(), REAL, TWO),
    "MEDGaussianClassifier": (MEDGaussianClassifier(), REAL, TWO),
    "MEDGenerativeClassifier": (MEDGenerativeClassifier(), REAL, TWO),
    "MEDOutlierDetector": (MEDOutlierDetector(), REAL, None),
    "MEDPartialLabelClassifier": (
        MEDPartialLabelClassifier(),
        REAL,
        np.where(np.arange(90) % 3, TWO, -1),
    ),
    "MEDRegressionSelector": (MEDRegressionSelector(), REAL, np.sin(REAL[:, 1])),
    "MEDRegressor": (
        MEDRegressor(C=10.0, solver="interior"),
        REAL,
        1e3 * np.sin(REAL[:, 1]),
    ),
    "MEDSequenceOutlierDetector": (
        MEDSequenceOutlierDetector(
            2, alphabet="ACGT", n_init=1, random_state=0, tol=1e-8
        ),
        STRANDS,
        None,
    ),
    "MEDTreeClassifier": (MEDTreeClassifier(), CODES, TWO),
    "MaxEntClassifier": (MaxEntClassifier(), REAL, THREE),
    "TrigramTopicModel": (
        TrigramTopicModel(2, random_state=0, tol=1e-2, max_iter=200),
        WORDS,
        None,
    ),
}
# other solvers of the same estimators
SOLVERS = {
    "smo": (MEDClassifier(C=100.0, solver="smo", tol=1e-9), REAL, TWO),
    "coordinate": (
        MEDClassifier("linear", C=10.0, solver="coordinate", tol=1e-8),
        REAL,
        TWO,
    ),
    "newton": (
        MEDClassifier("linear", C=99.0, solver="newton", sharpness=99.0, tol=1e-9),
        REAL,
        TWO,
    ),
    "three classes": (
        MEDClassifier(C=10.0, solver="interior", multi_class="joint"),
        REAL,
        THREE,
    ),
    "three classes, features": (
        MEDClassifier("linear", C=9.0, multi_class="joint"),
        REAL,
        THREE,
    ),
    "three classes, coordinate": (
        MEDClassifier(C=1e3, solver="smo", tol=1e-10, multi_class="joint"),
        REAL,
        THREE,
    ),
    "regression, newton": (
        MEDRegressor("linear", C=99.0, sharpness=99.0, solver="newton", tol=1e-9),
        REAL,
        REAL[:, 0] + np.sin(REAL[:, 1]),
    ),
    "blocks, interior": (MEDBayesNetClassifier(margin="gaussian"), CODES, TWO),
    "trust region": (
        M3EClassifier(2.0, 10.0, solver="ball", init="random", random_state=0),
        BAGS,
        LABELS,
    ),
    "latent SVM": (
        M3EModel(C=10.0, solver="latent_svm", n_init=2, random_state=0),
        JOINT,
        LABELS,
    ),
    "persistent chains": (
        LMERBM(
            1,
            n_init=1,
            moments="sampled",
            n_chains=400,
            n_updates=200,
            n_temperatures=40,
            mi_tol=-1.0,
            sampled_tol=0.05,
            random_state=0,
        ),
        BITS,
        None,
    ),
    "mixture": (
        MEDOutlierDetector(LatentMixture(n_init=1, random_state=0, tol=1e-6)),
        REAL,
        None,
    ),
    "three trees": (MEDTreeClassifier("dirichlet", level=2.0), CODES[:30], THREE[:30]),
}
EVERY = WORK | SOLVERS
NOT_ITERATIVE = {
    "CalibratedClassifierCV",
    "ChowLiuClassifier",
    "FisherFeatures",
    "FisherScores",
    "HiddenMarkovEstimator",  # the models' own fits have a callback
    "MixtureDensity",
    "Pipeline",
    "ProductKernel",
}


@pytest.fixture
def log(tmp_path):
    """Where a recorder writes."""
    return tmp_path / "log"


@pytest.fixture
def callbacks():
    """scikit-learn's callbacks, where it has them."""
    return pytest.importorskip("sklearn.callback")


def copy_of(name):
    """A fresh estimator, its rows and its labels."""
    estimator, X, y = EVERY[name]
    return clone(estimator), X, y


@functools.cache
def plain_fit(name):
    """An estimator that was fitted and nobody watched."""
    estimator, X, y = copy_of(name)
    return estimator.fit(X, y)


def fitted_arrays(estimator):
    """Every fitted attribute that is made of numbers."""
    out = {}
    for name, value in vars(estimator).items():
        if name.endswith("_") and not name.startswith("_"):
            parts = value.items() if isinstance(value, dict) else [("", value)]
            out |= {name + key: part for key, part in parts}
    return {
        name: value
        for name, value in out.items()
        if isinstance(value, (int, float, np.ndarray))
    }


def leaves(ended):
    """Ended tasks that are no groups of others."""
    return [
        names
        for names in ended
        if not any(other[: len(names)] == names for other in ended if other != names)
    ]


def test_every_iterative_estimator_is_tried():
    assert set(WORK) == set(CLASSES) - NOT_ITERATIVE


# -- scikit-learn's callbacks --------------------------------------------------------
@pytest.mark.parametrize("name", EVERY)
def test_tasks_are_nested_and_change_no_bit(callbacks, log, name):
    plain = plain_fit(name)
    watched, X, y = copy_of(name)
    watcher = Watcher(log)
    assert watched.set_callbacks(watcher) is watched
    watched.fit(X, y)
    told = events(log)
    ended = check_nested(told)
    kind = type(plain).__name__
    assert [event for _, event, _ in told[:2]] == ["setup", "begin"]
    assert [event for _, event, _ in told[-2:]] == ["end", "teardown"]
    assert ended[-1] == [[kind, "fit", 0]]
    assert len(leaves(ended)) >= 2
    before, after = fitted_arrays(plain), fitted_arrays(watched)
    assert before.keys() == after.keys()
    for key, value in before.items():
        np.testing.assert_array_equal(value, after[key], err_msg=key)
    if name == "TrigramTopicModel":
        assert watcher.fitted[0].weights_.shape == watched.weights_.shape
        return
    # the estimator of each step is ready to judge rows
    ask = "score_samples" if hasattr(watched, "score_samples") else "predict"
    if not hasattr(watched, ask):
        ask = "transform"
    ready = [model for model in watcher.fitted if model is not None]
    assert len(ready) >= 3
    for model in ready[::5]:
        assert model is not watched
        assert np.shape(getattr(model, ask)(X)) == np.shape(getattr(watched, ask)(X))
    pickle.loads(pickle.dumps(ready[0]))


@pytest.mark.parametrize("name", EVERY)
def test_callback_stops_the_fit(callbacks, log, name):
    estimator, X, y = copy_of(name)
    estimator.set_callbacks(Recorder(log, stop_after=1)).fit(X, y)
    assert estimator.converged_ is False
    # working sets are certified once they are told to stop
    steps = 2 if name == "smo" else 1
    assert len(leaves(check_nested(events(log)))) == steps
    full = plain_fit(name)
    assert fitted_arrays(full).keys() == fitted_arrays(estimator).keys()
    # of partial labels it belongs to the label means that were reached
    if hasattr(full, "divergences_"):  # the gaps are those of single rounds
        assert estimator.objective_ >= full.objective_
    elif hasattr(full, "duality_gap_") and name != "MEDPartialLabelClassifier":
        assert estimator.duality_gap_ >= full.duality_gap_
    # the next fit is a whole one
    again = estimator.set_callbacks().fit(X, y)
    assert again.objective_ == full.objective_


def test_best_point_until_the_stop_is_kept(callbacks, log):
    estimator, X, y = copy_of("MEDClassifier")
    watcher = Watcher(log, stop_after=4)
    estimator.set_callbacks(watcher).fit(X, y)
    gaps = [model.duality_gap_ for model in watcher.fitted[:4]]
    assert len(gaps) == 4
    # polishing the best point may only lower its gap
    assert estimator.duality_gap_ <= min(gaps)


def test_tasks_are_named(callbacks, log):
    for name, wanted in {
        "MEDTreeClassifier": {"fit", "iteration"},
        "LMEGaussianMixture": {"fit", "EM step"},
        "LatentMaxEnt": {"fit", "candidates", "EM step"},
    }.items():
        log.unlink(missing_ok=True)
        estimator, X, y = copy_of(name)
        estimator.set_callbacks(Recorder(log)).fit(X, y)
        named = {task for _, _, names in events(log) for _, task, _ in names}
        assert named == wanted


def test_candidates_of_processes_are_tasks(callbacks, log):
    estimator, X, y = copy_of("LatentMaxEnt")
    alone = clone(estimator).fit(X, y)
    estimator.set_params(n_jobs=2).set_callbacks(Recorder(log)).fit(X, y)
    ended = check_nested(events(log))
    size = _stationary_points.batch_size(estimator.n_init)
    batches = -(-estimator.n_init // size)
    assert batches > 1
    assert [names[-1][1:] for names in ended] == [
        *(["candidates", number] for number in range(batches)),
        ["fit", 0],
    ]
    assert estimator.objective_ == alone.objective_
    log.unlink()

    class Impatient(Recorder):
        def on_fit_task_end(self, estimator, context):
            super().on_fit_task_end(estimator, context)
            return context.task_name == "candidates"

    estimator.set_callbacks(Impatient(log)).fit(X, y)
    assert len(check_nested(events(log))) == 2
    assert len(estimator.candidates_["group"]) == size


@pytest.mark.parametrize("name", WORK)
def test_tasks_in_a_pipeline(callbacks, log, name):
    estimator, X, y = copy_of(name)
    pipeline = make_pipeline("passthrough", estimator)
    pipeline.set_callbacks(Recorder(log)).fit(X, y)
    ended = check_nested(events(log))
    own = [names for names in ended if len(names) > 2]
    assert len(own) >= 2
    assert all(names[0][0] == "Pipeline" for names in ended)
    assert all(names[1][0] == type(estimator).__name__ for names in own)
    assert not hasattr(estimator, "_skl_callbacks")


GRIDS = {
    "LMEBoltzmannMachine": {"prior_variance": [5.0, 10.0]},
    "LMEDirichletMixture": {"smoothing": [0.0, 1e-3]},
    "LMEGaussianMixture": {"n_components": [1, 2]},
    "LMERBM": {"prior_variance": [5.0, 10.0]},
    "LatentMaxEnt": {"n_init": [8, 9]},
    "MEDFeatureSelector": {"prior_inclusion": [0.1, 0.5]},
    "MEDRegressionSelector": {"prior_inclusion": [0.1, 0.5]},
    "MEDOutlierDetector": {"quantile": [0.2, 0.5]},
    "MEDSequenceOutlierDetector": {"n_states": [1, 2]},
    "MEDPartialLabelClassifier": {"step": [0.5, 1.0]},
    "MEDTreeClassifier": {"C": [1.0, 2.0]},
}


def without_score(estimator, X, y=None):
    """Score of an estimator that has none, and that of a few others."""
    return float(estimator.n_iter_)


@pytest.fixture
def pickled_by_value():
    """Functions and classes of the tests go to processes that cannot import them."""
    try:
        from joblib.externals import cloudpickle
    except ImportError:  # joblib >= 1.6
        import cloudpickle
    modules = recorders, sys.modules[__name__]
    for one in modules:
        cloudpickle.register_pickle_by_value(one)
    yield
    for one in modules:
        cloudpickle.unregister_pickle_by_value(one)


@pytest.mark.parametrize("name", WORK)
def test_tasks_in_a_search_with_two_processes(callbacks, log, pickled_by_value, name):
    if name == "TrigramTopicModel":
        pytest.skip("documents are no rows that a search can split")
    estimator, X, y = copy_of(name)
    grid = GRIDS.get(name, {"tol": [1e-4, 1e-5]})
    search = GridSearchCV(
        estimator, grid, cv=2, n_jobs=2, scoring=without_score, error_score="raise"
    )
    search.set_callbacks(Recorder(log)).fit(X, y)
    # tasks of processes overlap in time, and those of the search span them
    own = [entry for entry in events(log) if len(entry[2]) > 3]
    own = [entry for entry in own if entry[2][1][1] == "search"]  # no refit
    ended = check_nested(own)
    fits = {tuple(map(tuple, names[:3])) for names in ended}
    assert len(fits) == 4
    assert {names[2][0] for names in ended} == {type(estimator).__name__}


def test_clones_keep_the_callbacks(callbacks, log):
    estimator = MEDClassifier().set_callbacks(Recorder(log))
    clone(estimator).fit(REAL, TWO)
    assert check_nested(events(log))


def own_score(estimator, X, y):
    """What the estimator's method returns."""
    return {"score": estimator.score(X, y)}


@pytest.mark.parametrize(
    "name",
    [
        "LMEGaussianMixture",
        "MEDClassifier",
        "MEDFeatureSelector",
        "MEDGaussianClassifier",
        "MEDRegressionSelector",
        "MEDRegressor",
        "MEDTreeClassifier",
        "MaxEntClassifier",
        "newton",
        "three classes",
        "regression, newton",
    ],
)
def test_scores_are_monitored(callbacks, name):
    estimator, X, y = copy_of(name)
    y = TWO if y is None else y
    monitor = callbacks.ScoringMonitor(scoring=own_score)
    estimator.set_callbacks(monitor).fit(X, y)
    data = monitor.get_logs().data
    last = [row["score"] for row in data if row["task_name"] == "fit"]
    assert last == [estimator.score(X, y)]
    steps = [row["score"] for row in data if row["task_name"] != "fit"]
    assert len(steps) >= 2
    # converged within tol: the last step's model is the fitted one, nearly
    assert steps[-1] == pytest.approx(last[0], abs=0.05)


def test_weights_are_passed_on(callbacks):
    weight = np.where(TWO == 1, 2.0, 1.0)
    monitor = callbacks.ScoringMonitor(scoring="accuracy")
    model = MEDGaussianClassifier().set_callbacks(monitor)
    model.fit(REAL, TWO, sample_weight=weight)
    last = monitor.get_logs().data[0]
    assert last["accuracy"] == model.score(REAL, TWO, sample_weight=weight)


def test_nothing_is_computed_for_callbacks_that_do_not_ask(callbacks, log, monkeypatch):
    calls = []
    monkeypatch.setattr(module.Tasks, "_attributes", lambda *args: calls.append(args))
    estimator, X, y = copy_of("MEDClassifier")
    estimator.set_callbacks(Recorder(log)).fit(X, y)
    assert not calls


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_callbacks_are_torn_down_after_a_failure(callbacks, log, error):
    class Fails(Recorder):
        def on_fit_task_end(self, estimator, context):
            raise error

    estimator = MEDGaussianClassifier().set_callbacks(Fails(log))
    with pytest.raises(error):
        estimator.fit(REAL, TWO)
    assert [event for _, event, _ in events(log)] == [
        "setup",
        "begin",
        "begin",
        "teardown",
    ]
    assert "_progress" not in vars(estimator)
    assert not hasattr(estimator, "converged_")
    assert not hasattr(estimator, "_callback_fit_ctx")


def test_refused_parameters_tear_callbacks_down(callbacks, log):
    with pytest.raises(ValueError, match="C="):
        MEDGaussianClassifier(C=-1.0).set_callbacks(Recorder(log)).fit(REAL, TWO)
    assert [event for _, event, _ in events(log)] == ["setup", "begin", "teardown"]


def test_progress_bar(callbacks, capsys):
    pytest.importorskip("rich")
    for name in ("MEDClassifier", "LatentMaxEnt"):
        estimator, X, y = copy_of(name)
        estimator.set_callbacks(callbacks.ProgressBar()).fit(X, y)
        assert f"{name} - fit" in capsys.readouterr().out


WITHOUT = """
import sys
import sklearn.model_selection, sklearn.pipeline
sys.modules["sklearn.callback"] = None
from maxent import MEDClassifier
model = MEDClassifier(verbose=True).fit([[0.0], [1.0], [3.0]], [0, 1, 1])
assert model.set_callbacks() is model
try:
    model.set_callbacks(print)
except RuntimeError as error:
    print(error)
"""


def test_older_scikit_learn_is_named():
    out = run("-c", WITHOUT)
    assert "callbacks need scikit-learn >= 1.9" in out
    assert "converged after" in out


# -- lines ---------------------------------------------------------------------------
NUMBER = r"-?\d+(\.\d+)?(e[+-]\d+)?"
MEASURE = (
    r"(relative gap|relative gradient|relative decrease|gradient|residual|stationarity"
    r"|label change)"
)
STEP = re.compile(
    rf"\w+ +\d+\.\d\d s  [\w-]+ iteration \d+: (objective {NUMBER}, {MEASURE} "
    rf"({NUMBER}|inf) \(tol {NUMBER}\)(, \d+ of \d+ starts go on|, best of \d+ starts"
    rf"|, order {NUMBER} of the path)?"
    r"|no feasible point yet|not certified yet)"
)
SHARE = re.compile(r"\w+ +\d+\.\d\d s  \d+ of \d+ starts have ended")
START = re.compile(
    rf"\w+ +\d+\.\d\d s  start \d+ of \d+: step \d+ of the Bayes posterior, "
    rf"bound {NUMBER}"
)
STAGE = re.compile(
    r"TrigramTopicModel +\d+\.\d\d s  (\d+ words, \d+ bigrams, \d+ trigrams"
    r"|factorisation of the counts by \d+ topics|first weights: \d+, init='\w+'"
    r"|first pass over the documents)"
)
END = re.compile(
    rf"\w+ +\d+\.\d\d s  (\w+) after \d+ iterations? of [\w-]+: (.* admitted, )?"
    rf"objective {NUMBER}, {MEASURE} (< )?{NUMBER}"
)


@pytest.mark.parametrize("name", EVERY)
def test_lines_of_verbose(capsys, name):
    estimator, X, y = copy_of(name)
    estimator.set_params(verbose=True).fit(X, y)
    *steps, last = capsys.readouterr().out.splitlines()
    # compiling says so, once
    steps = [line for line in steps if "compil" not in line]
    assert steps
    for line in steps:
        assert any(kind.fullmatch(line) for kind in (STEP, SHARE, START, STAGE)), line
    end = END.fullmatch(last)
    assert end, last
    assert end[1] == "converged"
    assert last.startswith(type(estimator).__name__)
    assert f"objective {estimator.objective_:.6g}," in last


@pytest.mark.parametrize("name", ["mixture", "MEDSequenceOutlierDetector"])
def test_lines_of_starts(name, capsys, monkeypatch):
    """The posteriors that rounds begin with may take most of the time."""
    monkeypatch.setattr(module, "_SHORTEST", 0.0)
    monkeypatch.setattr(module, "_LONGEST", 0.0)
    estimator = copy_of(name)[0].set_params(verbose=True)
    estimator.fit(copy_of(name)[1])
    lines = capsys.readouterr().out.splitlines()
    starts = [line for line in lines if START.fullmatch(line)]
    assert " start 1 of " in starts[0] and len(starts) > 1


FITS = {
    "softmax_rows": "maxent.MaxEntClassifier(verbose=True)"
    ".fit(scipy.sparse.csr_array(np.eye(4)), [0, 1, 0, 1])",
    "binary_units": "maxent.LMEBoltzmannMachine(1, 1, method='lbfgs', verbose=True, "
    "random_state=0).fit(np.eye(3)[[0, 1, 2, 0, 1]])",
    "trigram_sums": "maxent.TrigramTopicModel(2, 1, max_iter=200, verbose=True, "
    "random_state=0).fit([list('abcab'), list('xyzxy')] * 2)",
}


@pytest.mark.parametrize(
    "module",
    [
        "softmax_rows",
        pytest.param("binary_units", marks=pytest.mark.slow),
        pytest.param("trigram_sums", marks=pytest.mark.slow),
    ],
)
def test_compilation_is_announced_in_every_fit(module, tmp_path):
    code = f"import numpy as np, scipy.sparse, maxent; {FITS[module]}"
    own = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-W", "ignore", "-c", code]
    for expected in (1, 0):  # the second finds the cache
        options = {"env": own, "cwd": tmp_path, "capture_output": True, "text": True}
        done = subprocess.run(command, **options)
        assert done.stdout.count(f"compiling {module} ") == expected, done.stderr


def test_lines_change_no_bit(capsys):
    for name in ("MEDClassifier", "MEDTreeClassifier", "LMEGaussianMixture"):
        estimator, X, y = copy_of(name)
        plain = fitted_arrays(clone(estimator).fit(X, y))
        loud = fitted_arrays(estimator.set_params(verbose=1).fit(X, y))
        for key, value in plain.items():
            np.testing.assert_array_equal(value, loud[key], err_msg=key)


def test_last_line_of_a_fit_that_does_not_converge(capsys):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        MEDTreeClassifier(max_iter=1, tol=1e-14, verbose=True).fit(CODES, TWO)
    assert "max_iter" in str(caught[0].message)
    last = END.fullmatch(capsys.readouterr().out.splitlines()[-1])
    assert last[1] == "max_iter"


def test_last_line_of_a_stopped_fit(callbacks, log, capsys):
    model = MEDTreeClassifier(verbose=True)
    model.set_callbacks(Recorder(log, stop_after=1)).fit(CODES, TWO)
    last = END.fullmatch(capsys.readouterr().out.splitlines()[-1])
    assert last[1] == "stopped"


def test_lines_are_few(capsys, monkeypatch):
    """Of an hour of steps of 1 ms, at most ten lines a second and 500 in all."""
    now = 0.0
    monkeypatch.setattr(module.time, "perf_counter", lambda: now)
    lines, times = module.Lines("Name"), []
    for step in range(3_600_000):
        now = step / 1000.0
        if now < lines.next and step % 100:
            continue
        lines.show(Report(step, 1.0, 0.1, "interior", 0.05, 1e-6))
        if capsys.readouterr().out:
            times.append(now)
    gaps = np.diff(times)
    assert gaps.min() >= 0.1 - 1e-9
    assert gaps.max() <= 10.0 + 1e-9 + 0.1
    assert len(times) <= 500
    lines.print("end")
    assert capsys.readouterr().out == "Name  3600.00 s  end\n"


def test_points_without_an_objective_are_said_in_words():
    lines = module._state(Report(3, -np.inf, np.inf, "coordinate"))
    assert lines == "no feasible point yet"
    assert module._state(Report(3, np.nan, np.nan)) == "not certified yet"


# -- plain callbacks -----------------------------------------------------------------
def stops_at(count):
    """A plain callback that asks to stop when it is called for the nth time."""
    calls = []

    def callback(n_iter, objective, gap):
        calls.append((n_iter, objective, gap))
        return len(calls) >= count

    return calls, callback


def test_plain_callback_stops_a_kernel_dual():
    y = np.where(TWO == 1, 1.0, -1.0)
    K = np.exp(-((REAL[:, None] - REAL[None]) ** 2).sum(-1))
    calls, callback = stops_at(1)
    options = {"solver": "interior", "callback": callback, "tol": 1e-12}
    result = solve_dual(K, y, ExponentialMargin(9.0), **options)
    assert result.status == "stopped"
    assert not result.converged
    assert len(calls) == 1
    assert result.history == calls
    assert np.isfinite(result.objective)


@pytest.mark.parametrize("solver", ["interior", "coordinate", "newton"])
def test_plain_callback_stops_a_linear_dual(solver):
    y = np.where(TWO == 1, 1.0, -1.0)
    calls, callback = stops_at(1)
    options = {"solver": solver, "callback": callback, "tol": 1e-12}
    result = solve_linear_dual(REAL, y, ExponentialMargin(9.0), **options)
    assert result.status == "stopped"
    assert len(calls) == 1


@pytest.mark.parametrize("solver", ["interior", "newton"])
def test_plain_callback_stops_blocks(solver):
    y = np.where(TWO == 1, 1, -1)
    prior = DirichletProduct(1.0, n_categories=[3] * 4)
    blocks = [prior.block(CODES, y == 1), prior.block(CODES, y == -1)]
    calls, callback = stops_at(2)
    result = solve_blocks(
        blocks,
        [np.diag(y), np.diag(-y)],
        ExponentialMargin(3.0),
        bias="flat",
        incidence=y,
        solver=solver,
        callback=callback,
        tol=1e-12,
    )
    assert result.status == "stopped"
    assert len(calls) == 2
    assert np.isfinite(result.gap)


def test_other_answers_do_not_stop():
    y = np.where(TWO == 1, 1.0, -1.0)
    result = solve_linear_dual(
        REAL, y, ExponentialMargin(9.0), callback=lambda *args: len(args)
    )
    assert result.converged


def test_plain_callback_stops_em():
    """Newton's steps to the root of 2 from each start: x -> (x + 2 / x) / 2."""
    calls, callback = stops_at(3)
    _, result = maximize_by_em(
        lambda x: (-abs(x - np.sqrt(2.0)), (x + 2.0 / x) / 2.0),
        [9.0, 7.0],
        tol=1e-12,
        max_iter=50,
        callback=callback,
    )
    assert result.status == "stopped"
    assert result.objectives == [result.objective]
    assert len(calls) == 3


# -- the logger ----------------------------------------------------------------------
def test_the_logger_has_what_verbose_prints(caplog, capsys):
    model = MEDTreeClassifier()
    model.fit(CODES, TWO)
    assert not caplog.records and capsys.readouterr().out == ""  # as libraries do
    with caplog.at_level(logging.INFO, "maxent"):
        model.fit(CODES, TWO)
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("maxent", logging.INFO)
    assert END.fullmatch(record.getMessage())[1] == "converged"
    caplog.clear()
    with caplog.at_level(logging.DEBUG, "maxent"):
        model.set_params(verbose=True).fit(CODES, TWO)
    said = [record.getMessage() for record in caplog.records]
    assert capsys.readouterr().out.splitlines() == said
    levels = [record.levelno for record in caplog.records]
    assert (
        levels == [logging.DEBUG] * (len(said) - 1) + [logging.INFO] and len(said) > 1
    )


def test_the_logger_changes_no_bit(caplog):
    for name in ("MEDClassifier", "LMEGaussianMixture"):
        estimator, X, y = copy_of(name)
        plain = fitted_arrays(clone(estimator).fit(X, y))
        with caplog.at_level(logging.DEBUG, "maxent"):
            logged = fitted_arrays(estimator.fit(X, y))
        for key, value in plain.items():
            np.testing.assert_array_equal(value, logged[key], err_msg=key)


def test_a_fit_that_nobody_hears_asks_for_no_reports(caplog):
    estimator, _, _ = copy_of("MEDClassifier")
    for level, asks in ((logging.INFO, False), (logging.DEBUG, True)):
        with caplog.at_level(level, "maxent"):
            progress = module.Progress(estimator, {})
            assert (progress.callback() is not None) == asks
