"""Detectors in the shell: mixtures, thresholds, reasons, budgets and names of rows."""

import numpy as np
import pytest
from command_line import assert_one_sentence, loaded, read_rows, write_csv

from maxent import MEDOutlierDetector
from maxent.discrimination import LatentMixture

DETECTOR = ("--estimator", "outliers", "--contamination", "0.1", "-q")


@pytest.fixture
def rows(tmp_path, rng):
    X = rng.normal(size=(90, 3)).round(3) + 9.0 * rng.integers(0, 3, size=(90, 1))
    return write_csv(tmp_path / "x.csv", X, names=["a", "b", "c"]), X


@pytest.mark.parametrize(
    "options, params",
    [
        (["--components", 3], {"n_components": 3, "n_init": 5}),
        (["--set", "n_components=3"], {"n_components": 3, "n_init": 5}),
        (["--starts", 2, "--seed", 7], {"n_init": 2, "random_state": 7}),
        ([], {"n_components": 2, "random_state": 0}),
    ],
)
def test_options_reach_the_mixture(run, rows, tmp_path, options, params):
    path, X = rows
    model = ("--outlier-model", "mixture")
    assert run("fit", path, tmp_path / "m", *DETECTOR, *model, *options)[0] == 0
    machine = loaded(tmp_path / "m")
    assert {k: vars(machine.model)[k] for k in params} == params
    mixture = LatentMixture(**{"random_state": 0, **params})
    expected = MEDOutlierDetector(mixture, contamination=0.1).fit(X)
    np.testing.assert_allclose(
        machine.score_samples(X), expected.score_samples(X), rtol=1e-9
    )


def test_mixtures_of_categories(run, tmp_path, rng):
    cells = rng.choice(["x", "y", "z"], size=(40, 2))
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["p,q", *map(",".join, cells.tolist())]) + "\n")
    options = "--outlier-model", "mixture", "--set", "component=multinomial"
    assert run("fit", path, tmp_path / "m", *DETECTOR, *options)[0] == 0
    assert loaded(tmp_path / "m").model.component == "multinomial"


@pytest.mark.parametrize(
    "options, words",
    [
        (["--components", 3], "--components 3 is of a mixture: say --outlier-model"),
        (["--starts", 3], "--starts 3 is of a mixture"),
        (["--outlier-model", "mixture", "--components", 0], "--components 0 must be"),
        (["--outlier-model", "mixture", "--components", 99], "--components 99 is more"),
        (["--outlier-model", "mixture", "--width", 3], "--width is for sequences"),
        (["--outlier-model", "mixture", "--hidden", 3], "--hidden does not apply"),
    ],
)
def test_wrong_options_are_one_sentence(run, rows, tmp_path, options, words):
    code, out, err = run("fit", rows[0], tmp_path / "m", *DETECTOR, *options)
    assert (code, out) == (2, "") and words in err
    assert_one_sentence(err, "fit")


def test_info_prints_the_threshold(run, rows, tmp_path):
    run("fit", rows[0], tmp_path / "m", *DETECTOR)
    offset = loaded(tmp_path / "m").offset_
    out = run("info", tmp_path / "m")[1]
    assert f"scores below {offset:.8g} are outliers" in out


def test_reasons_sum_columns_of_text_and_name_their_columns(run, tmp_path, rng):
    X = rng.normal(size=(80, 2)).round(3)
    kind = rng.choice(["p", "q", "r"], 80)
    lines = [f"{a},{k},{b}" for (a, b), k in zip(X.tolist(), kind.tolist())]
    lines[7] = f"{X[7, 0]},p,25"
    path, model = tmp_path / "t.csv", tmp_path / "m"
    path.write_text("\n".join(["u,kind,v", *lines]) + "\n")
    assert run("fit", path, model, *DETECTOR, "--standardize")[0] == 0
    code, out, _ = run("predict", model, path, "--score", "--explain")
    table = read_rows(out)
    head = [f"{word}_{k}" for k in (1, 2, 3) for word in ("column", "share")]
    assert code == 0 and table[0] == ["prediction", "score", *head]
    assert table[8][2] == "v" and float(table[8][3]) < -5
    shares = np.array([[float(row[k]) for k in (3, 5, 7)] for row in table[1:]])
    constant = np.array([float(row[1]) for row in table[1:]]) - shares.sum(axis=1)
    np.testing.assert_allclose(constant, constant[0])  # all columns are there
    assert (np.diff(shares) >= 0).all()
    assert all({*row[2::2]} == {"u", "v", "kind"} for row in table[1:])


def test_a_budget_lists_the_lowest_scores(run, rows, tmp_path):
    path, X = rows
    run("fit", path, tmp_path / "m", *DETECTOR)
    score = loaded(tmp_path / "m").score_samples(X)
    code, out, err = run("predict", tmp_path / "m", path, "--top", 4)
    table = read_rows(out)
    assert code == 0 and table[0] == ["row", "prediction", "score"]
    assert [int(row[0]) - 1 for row in table[1:]] == np.argsort(score)[:4].tolist()
    assert {row[1] for row in table[1:]} == {"-1"} and "outliers 4 of 90" in err
    code, _, err = run("predict", tmp_path / "m", path, "--top", 91)
    assert code == 2 and "--top 91: there are 90 rows only" in err


@pytest.mark.parametrize(
    "options, words",
    [
        (["--explain"], "defines no shares of columns; detectors of outliers"),
        (["--top", "3"], "--top: "),
        (["--score"], "defines no log-likelihoods"),
    ],
)
def test_other_models_have_no_reasons(run, crabs, tmp_path, options, words):
    run("fit", crabs, tmp_path / "m", "--label", "sex", "-q")
    code, out, err = run("predict", tmp_path / "m", crabs, *options)
    assert (code, out) == (2, "") and words in err


def test_several_columns_name_the_rows(run, tmp_path, rng):
    X = rng.normal(size=(30, 2)).round(3)
    lines = [f'"n, {i}",{a},{b},{i % 3}' for i, (a, b) in enumerate(X.tolist())]
    path, model = tmp_path / "x.csv", tmp_path / "m"
    path.write_text("\n".join(['"id, no",a,b,batch', *lines]) + "\n")
    for ids in (("--id", "id, no", "--id", "batch"), ("--id", "0,3")):
        assert run("fit", path, model, *DETECTOR, *ids)[0] == 0
        table = read_rows(run("predict", model, path)[1])
        assert table[0] == ["id, no", "batch", "prediction"]
        assert table[5][:2] == ["n, 4", "1"]
    table = read_rows(run("predict", model, path, "--id", "batch", "--score")[1])
    assert table[0] == ["batch", "prediction", "score"]
    bare = tmp_path / "bare.csv"
    bare.write_text("".join(path.read_text().splitlines(keepends=True)[1:]))
    assert run("fit", bare, model, *DETECTOR, "--id", "0,3")[0] == 0
    assert read_rows(run("predict", model, bare)[1])[0] == [
        "id_0",
        "id_3",
        "prediction",
    ]
    code, _, err = run("fit", path, model, *DETECTOR, "--id", "batch,no")
    assert code == 2 and "has no column 'no'; its columns are" in err


def test_a_column_that_counts_the_rows_is_told(run, rows, tmp_path):
    X = rows[1]
    for start, step, told in ((1, 1, True), (0, 1, True), (1, 2, False)):
        count = start + step * np.arange(len(X), dtype=float)
        path = write_csv(tmp_path / "c.csv", np.c_[count, X], names=["n", *"abc"])
        err = run("fit", path, tmp_path / "m", *DETECTOR)[2]
        assert ("column 'n' counts the rows: --id n names" in err) == told


def test_a_label_that_the_detector_has_learnt_from_is_refused(run, tmp_path):
    rng = np.random.default_rng(0)
    rows = [f"t{i},{a:.3f},{b:.3f},{'yes' if a > 1 else 'no'}" for i, (a, b) in
            enumerate(rng.normal(size=(120, 2)))]  # fmt: skip
    path, bare, model = tmp_path / "plant.csv", tmp_path / "bare.csv", tmp_path / "m"
    path.write_text("\n".join(["time,a,b,incident", *rows]) + "\n")
    bare.write_text("\n".join(rows) + "\n")
    fit = "fit", path, model, "--estimator", "outliers", "--id", "time"
    assert run(*fit)[0] == 0
    code, _, err = run("evaluate", model, path, "--label", "incident")
    assert code == 2 and "has learnt from it as a feature" in err
    assert run(*fit, "--label", "incident")[0] == 0
    judged = "evaluate", model, path, "--label", "incident", "--positive", "yes"
    assert run(*judged)[0] == 0
    # ids by name, and a file without names
    code, _, err = run("predict", model, bare, "--label", 3)
    assert code == 2 and "ids named 'time'" in err
    assert run("predict", model, bare, "--label", 3, "--id", 0)[0] == 0
