"""The scripts of published experiments: how they hang together, what they compute."""

import ast
import csv
import dataclasses
import functools
import gzip
import importlib.metadata
import json
import pathlib
import re
import sys
import time

import numpy as np
import pytest
from processes import HUNG, run, start

import maxent.datasets

HOME = pathlib.Path(__file__).resolve().parents[2] / "benchmarks" / "papers"
pytestmark = pytest.mark.skipif(
    not HOME.is_dir(), reason="the benchmarks are not beside the tests"
)


@pytest.fixture
def load(monkeypatch):
    """Import a module of the folder; it is forgotten after the test."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(HOME))
    yield __import__
    for name in set(sys.modules) - before:
        if (HOME / f"{name}.py").exists():
            del sys.modules[name]


def imports():
    """{module: modules of the folder that it imports, anywhere in it}."""
    names = {path.stem for path in HOME.glob("*.py")}
    graph = {}
    for path in HOME.glob("*.py"):
        found = set()
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                found.add(node.module)
        graph[path.stem] = found & names
    return graph


def test_modules_import_one_another_in_no_circle():
    graph = imports()
    while graph:
        leaves = [name for name, needs in graph.items() if not needs & set(graph)]
        assert leaves, f"a circle among {sorted(graph)}"
        graph = {name: graph[name] for name in graph if name not in leaves}


def test_modules_need_no_private_name_of_the_package():
    for path in HOME.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            module = getattr(node, "module", None) or ""
            assert not (module.startswith("maxent") and "._" in module), path.name


def test_the_bias_of_fewest_errors_is_the_best_and_central(load, rng):
    fewest_errors = load("_gaussians").fewest_errors
    for digits in (1, 6):  # with equal ratios, and without
        for _ in range(30):
            y = rng.integers(0, 2, size=15)
            ratio = np.round(rng.normal(size=15) + y, digits)
            found = fewest_errors(ratio, y)
            edges = np.unique(ratio)
            middles = 0.5 * (edges[1:] + edges[:-1])
            biases = -np.concatenate([[edges[0] - 1], middles, [edges[-1] + 1]])
            errors = [np.sum((ratio + b > 0) != (y == 1)) for b in biases]
            assert np.sum((ratio + found > 0) != (y == 1)) == min(errors)
            gaps = np.concatenate([[0.0], np.diff(edges), [0.0]])
            widest = max(g for g, e in zip(gaps, errors) if e == min(errors))
            assert np.min(np.abs(ratio + found)) == pytest.approx(
                widest / 2 if widest else 1.0
            )


def test_edges_in_numbers(load):
    measures = load("splice_tree").edge_measures
    n = 4
    information = np.zeros((n, n))
    information[[0, 1, 2], [1, 2, 3]] = [3.0, 2.0, 1.0]
    log_weights = np.zeros((n, n))
    log_weights[[0, 0, 1], [2, 3, 3]] = [1.0, 3.0, 2.0]
    found = measures(log_weights, information)
    assert found["first_to_second"] == pytest.approx(np.e)
    assert (found["weights_adjacent"], found["information_adjacent"]) == (0, 3)
    assert found["rank_correlation"] < 0


def test_divergences_of_pages_are_those_of_the_definition(load, rng):
    from scipy.sparse import csr_array

    webkb, n = load("webkb"), 4
    X = rng.poisson(0.7, size=(6, 9)).astype(float)
    X[:, 0] += 1.0
    P = X / X.sum(axis=1, keepdims=True)

    def divergence(p, q):
        seen = p > 0
        return np.sum(p[seen] * np.log(p[seen] / q[seen]))

    found = webkb.jensen_shannon(csr_array(P), n)
    expected = [
        [0.5 * (divergence(p, (p + q) / 2) + divergence(q, (p + q) / 2)) for q in P[:n]]
        for p in P
    ]
    np.testing.assert_allclose(found, expected, atol=1e-13)
    background = P[:n].mean(axis=0)
    keep = background > 0  # the first rows may lack a word
    smooth = (X + webkb.BACKGROUND * background)[:, keep]
    smooth /= smooth.sum(axis=1, keepdims=True)
    expected = [
        [divergence(p, q) + divergence(q, p) for q in smooth[:n]] for p in smooth
    ]
    found = webkb.symmetric_kl(csr_array(X[:, keep]), n)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_settings_are_chosen_without_the_test_rows(load, rng):
    precomputed = load("_precomputed")
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] > 0).astype(int)
    train, test = np.arange(40), np.arange(40, 60)
    kernels = {"noise": X[:, 1:] @ X[:, 1:].T, "signal": X[:, :1] @ X[:, :1].T}
    error, setting, C, grid = precomputed.chosen_error(
        kernels, y, train, test, (1.0, 10.0), 0
    )
    assert setting == "signal"
    assert error == grid[1, (1.0, 10.0).index(C)]
    other = np.where(np.arange(60) < 40, y, 1 - y)
    turned = precomputed.chosen_error(kernels, other, train, test, (1.0, 10.0), 0)
    assert turned[1:3] == (setting, C)
    assert turned[0] == pytest.approx(1 - error)


def test_exons_and_introns_of_a_transcript_are_on_one_side(load, rng, monkeypatch):
    script = load("exon_intron")
    monkeypatch.setattr(script, "SIZE", 5)
    exons = [(f"g{i % 12}", f"exon{i}g{i % 12}") for i in range(96)]
    introns = [(f"g{i % 12}", f"intron{i}g{i % 12}") for i in range(96)]
    sequences, y, train, test = script.sampled(exons, introns, np.random.default_rng(0))
    groups = np.array([s[s.rindex("g") :] for s in sequences])
    assert not set(groups[train]) & set(groups[test])
    assert [s.startswith("intron") for s in sequences] == (y == 1).tolist()
    assert np.bincount(y[train]).tolist() == np.bincount(y[test]).tolist() == [5, 5]


@pytest.mark.filterwarnings("ignore:CategoricalHMM.fit")
def test_chains_of_pairs_of_states_keep_their_order(load, rng):
    letters = "".join(rng.choice(list("ACGT"), size=60))
    (model,) = load("exon_intron").state_pairs([letters], rng)
    for a, before in enumerate(np.ndindex(2, 2)):
        for b, after in enumerate(np.ndindex(2, 2)):
            assert before[1] == after[0] or model.transition[a, b] == 0.0


def probes(folder, rng, n=300):
    """An array like those of the challenge: one factor, some spots flagged bad."""
    X = ["".join(row) for row in rng.choice(list("ACGT"), size=(n, 35))]
    signal = rng.gamma(2.0, 500.0, size=n)
    rows = [
        f"{x},{s:.0f}" if i % 50 else f"{x}," for i, (x, s) in enumerate(zip(X, signal))
    ]
    with gzip.open(folder / "hk_signal.csv.gz", "wt", encoding="utf-8") as stream:
        stream.write("\n".join(["sequence,Egr2", *rows, ""]))
    return X, signal


def test_probes_are_read_without_bad_spots_and_parts_are_apart(load, rng, tmp_path):
    script = load("motifs_pbm")
    X, signal = probes(tmp_path, rng)
    codes, values = script.read_signals(tmp_path, ["Egr2"])["Egr2"]
    kept = np.arange(300) % 50 != 0
    assert ["".join("ACGT"[a] for a in row) for row in codes] == [
        x for x, good in zip(X, kept) if good
    ]
    np.testing.assert_allclose(values, np.round(signal[kept]))
    y, *parts = script.sampled(values, "median", rng, 100, 80)
    assert list(map(len, parts)) == [100, 25, 80]
    assert len(np.unique(np.concatenate(parts))) == 205
    assert np.median(values[y == 0]) < np.median(values) < np.median(values[y == 1])
    script.STRONGEST = 40
    y, *parts = script.sampled(values, "top", rng, 100, 80)
    rows = np.concatenate(parts)
    top = np.sort(values)[-40]
    assert (y[rows] == (values[rows] >= top)).all() and len(parts[0]) == 40


def test_methods_are_chosen_by_the_mean_over_the_draws(load):
    script = load("motifs_pbm")
    table = {("0", 0.1): [0.2, 0.3], ("0", 1.0): [0.1, 0.5], ("1", 0.1): [0.3, 0.3]}
    records = [
        {"method": m, "rate": c, "draw": k, "train": e, "test": e}
        for (m, c), errors in table.items()
        for k, e in enumerate(errors)
    ]
    assert script.chosen(records[:4], ["0"], "train") == ("0", 0.1)
    found = script.percent(records, ("0", 1.0), "test")
    np.testing.assert_allclose(found, [10.0, 50.0])


def test_windows_and_parts_of_the_digits(load, rng):
    script = load("digits_clutter")
    images = rng.random((12, 16, 16))
    cells = script.cells_of(images, "pixels")
    assert cells.shape == (12, 4, 4, 16)
    np.testing.assert_allclose(
        cells[3, 1, 2] + images.mean(), images[3, 4:8, 8:12].ravel()
    )
    y = np.repeat(np.arange(3), 20)
    train, valid, test = script.split(y, rng, 8)
    assert np.bincount(y[train]).tolist() == [8] * 3
    assert np.bincount(y[valid]).tolist() == [2] * 3
    assert sorted(np.concatenate([train, valid, test])) == list(range(60))


def test_a_time_limit_ends_a_fit(load):
    limit = load("language_model").TimeLimit
    assert limit(0.0).on_fit_task_end(None, None)
    assert not limit(10.0).on_fit_task_end(None, None)


def test_hidden_variables_are_compared_with_their_own_posterior(
    load, monkeypatch, tmp_path, rng
):
    script = load("anomaly_splice")
    small = {"TRUE_TEST": 30, "FALSE_TEST": 30, "COMPONENTS": (2,), "STATES": (2,)}
    for name, value in small.items():
        monkeypatch.setattr(script, name, value)
    true = np.arange(160) % 2 == 0
    codes = rng.integers(0, 4, size=(160, 6))
    codes[true, 2:4] = 1
    models = script.latent_models(6, starts=1)
    normal, scores, support = script.latent_draw(codes, true, rng, models)
    assert normal.sum() == 30 and len(scores) == 6
    for name, (train, test) in scores.items():
        assert len(train) == 50 and len(test) == 60
        assert script.bayes_of(name) in scores
        assert 0 < support[name] <= 50
    assert script.bayes_of("MED, quantile 0.2, C 1") == "Bayes posterior"
    script.picture(normal, scores, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 1000


# -- results -----------------------------------------------------------------------
def units(n):
    return [{"draw": k, "kind": kind} for k in range(n) for kind in ("a", "b")]


def options(folder, *words):
    """Options of a script of the folder."""
    out = __import__("_results").parser("A script.", 2)
    out.add_argument("--steps", type=int, default=3)
    return out.parse_args(["--out", str(folder), *words])


class Work:
    """Rows of a unit, that counts its calls and fails at one of them."""

    def __init__(self, fails_at=None):
        self.calls, self.fails_at = [], fails_at

    def __call__(self, draw, kind):
        if len(self.calls) == self.fails_at:
            raise KeyboardInterrupt
        self.calls.append((draw, kind))
        value = np.float64(draw + 1) / 3
        return [{"row": f"{kind} {k}", "value": value, "empty": ""} for k in range(2)]


def test_an_interrupted_run_goes_on_where_it_was(load, tmp_path, capsys):
    results = load("_results")
    whole = results.run("whole", options(tmp_path, "--draws", "3"), units(3), Work())
    first = Work(fails_at=3)
    with pytest.raises(SystemExit, match=r"interrupted at 4 of 6.*goes on from there"):
        results.run("part", options(tmp_path, "--draws", "3"), units(3), first)
    kept = (tmp_path / "part.csv").read_text("utf-8").splitlines()
    assert len(kept) == 1 + 2 * 3
    second = Work()
    found = results.run("part", options(tmp_path, "--draws", "3"), units(3), second)
    every = [tuple(unit.values()) for unit in units(3)]
    assert first.calls + second.calls == every
    np.testing.assert_equal(found, whole)
    assert found[0]["value"] == 1 / 3 and np.isnan(found[0]["empty"])
    third = Work()
    np.testing.assert_equal(
        results.run("part", options(tmp_path, "--draws", "3"), units(3), third), whole
    )
    assert not third.calls and "delete it to run again" in capsys.readouterr().err


def test_more_draws_are_added_and_fewer_are_refused(load, tmp_path):
    results = load("_results")
    results.run("one", options(tmp_path), units(2), Work())
    work = Work()
    found = results.run("one", options(tmp_path, "--draws", "3"), units(3), work)
    assert work.calls == [(2, "a"), (2, "b")] and len(found) == 12
    with pytest.raises(SystemExit, match="has 3 draws, and 2 are asked for: give --dr"):
        results.run("one", options(tmp_path), units(1), Work())


@pytest.mark.parametrize("words", [("--seed", "1"), ("--steps", "4")])
def test_a_file_of_other_options_is_refused(words, load, tmp_path):
    results = load("_results")
    results.run("one", options(tmp_path), units(1), Work())
    before = (tmp_path / "one.csv").read_bytes()
    message = rf"other options: {words[0][2:]} \d, not {words[1]}; delete it or .*--out"
    with pytest.raises(SystemExit, match=message):
        results.run("one", options(tmp_path, *words), units(2), Work())
    assert (tmp_path / "one.csv").read_bytes() == before


def test_a_file_of_unknown_options_is_refused(load, tmp_path):
    results = load("_results")
    results.run("one", options(tmp_path), units(1), Work())
    (tmp_path / "one.json").unlink()
    with pytest.raises(SystemExit, match="other options"):
        results.run("one", options(tmp_path), units(1), Work())


def test_how_results_came_about_adds_up(load, tmp_path, monkeypatch):
    results = load("_results")
    monkeypatch.setattr(sys, "argv", ["/home/of/me/x.py", "--data", "/home/of/me/set"])
    ticks = iter(range(1000))
    monkeypatch.setattr(results.time, "perf_counter", lambda: float(next(ticks)))
    for commit, n in (("first", 1), ("second", 3)):
        monkeypatch.setattr(results, "commit", lambda commit=commit: commit)
        results.run("one", options(tmp_path), units(n), Work())
    about = json.loads((tmp_path / "one.json").read_text("utf-8"))
    assert about["seconds"] == 6.0  # one tick in each of six units
    assert about["commit"] == "first, second"
    assert about["command"] == "x.py --data set"  # no folder of somebody
    assert set(about["versions"]) > {"maxent", "numpy", "python"}


def test_a_commit_says_whether_the_package_was_changed(load, monkeypatch):
    results, said = load("_results"), {}

    def answer(command, **_):
        return said["diff" if "diff" in command else "head"]

    monkeypatch.setattr(results.subprocess, "check_output", answer)
    for changed in ("", "maxent/tree.py\n"):
        said |= {"head": "abcd1234\n", "diff": changed}
        assert results.commit() == "abcd1234" + " modified" * bool(changed)
    monkeypatch.setattr(results.subprocess, "check_output", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        results.commit()

    def nothing(*_, **__):
        raise FileNotFoundError

    monkeypatch.setattr(results.subprocess, "check_output", nothing)
    assert results.commit() == importlib.metadata.version("maxent")


def test_means_and_errors_of_what_is_known(load, rng):
    results = load("_results")
    x = rng.normal(size=7)
    error = np.std(x, ddof=1) / np.sqrt(7)
    text = results.mean_and_error([*x, np.nan], 3)
    assert text == f"{x.mean():.3f} ± {error:.3f}"
    assert results.mean_and_error([np.nan]) == "none"
    assert results.mean_and_error([2.0]) == "2.00"
    assert results.share([1, 0, np.nan, 1, 1]) == "75 %"


# -- every script ------------------------------------------------------------------
def letters(rng, n, width, share=None):
    return ["".join(row) for row in rng.choice(list("ACGT"), size=(n, width), p=share)]


def zipped(path, lines):
    with gzip.open(path, "wt", encoding="utf-8", newline="") as stream:
        stream.write("\n".join([*lines, ""]))


def made_data(folder, rng):
    """Little files of the kinds that `fetch` names."""
    rows = ["site,label,sequence"]
    for s in zip(letters(rng, 55, 140), letters(rng, 55, 140, SHARE)):
        rows += [f"donor,{label},{x}" for label, x in enumerate(s)]
    zipped(folder / "human_sites.csv.gz", rows)
    words = ["".join(w) for w in rng.choice(list("abc"), size=(30, 3))]
    rows = ["category,university,text,n_words"]
    for k in range(48):
        places = ("cornell", "texas", "washington", "wisconsin", "misc", "misc")
        text = " ".join(rng.choice(words[10 * (k % 2) :], size=30))
        rows.append(f"{('faculty', 'student')[k % 2]},{places[k // 2 % 6]},{text},30")
    zipped(folder / "webkb.csv.gz", rows)
    lines = [
        line
        for k in range(60)
        for kind in ("exon", "intron")
        for line in (f">{kind}|t{k % 12}|{k}", letters(rng, 1, 36)[0])
    ]
    zipped(folder / "exon_intron.fasta.gz", lines)
    rows = [f"{k},news,{' '.join(rng.choice(list('abcdefgh'), 60))}" for k in range(20)]
    zipped(folder / "brown.csv.gz", ["document,category,text", *rows])
    probes(folder, rng)
    position = rng.integers(0, 29, size=(60, 2))
    X = rng.integers(0, 32, size=(60, 56, 56), dtype=np.uint8)
    path = folder / "digits_on_clutter.npz"
    np.savez(path, X=X, y=np.arange(60) % 6, position=position)


SHARE = [0.55, 0.15, 0.15, 0.15]
SITES = {"TRUE_TEST": 20, "FALSE_TEST": 20}
DATA = ("--data", "FOLDER")
LATENT = ("--starts", "3")
MOTIFS = ("--train", "60", "--test", "60", "--starts", "1", "--alphas", "0.25")
# script: its options, of which FOLDER has the data; module constants; its results
SCRIPTS = {
    "crabs": (("--rows", "others", "curves"), {}, ("crabs", "crabs_curves")),
    "breast_cancer": (("--rows", "others"), {}, ("breast_cancer",)),
    "anomaly_splice": (DATA, SITES, ("anomaly_splice",)),
    "splice_partial": (
        DATA,
        {**SITES, "TRAIN": 30, "LABELLED": 5},
        ("splice_partial",),
    ),
    "splice_tree": (DATA, {**SITES, "TRAIN": 30}, ("splice_tree_human",)),
    "partial_rivals": ((), {}, ("partial_rivals",)),
    "webkb": (DATA, {"SIZES": (12, 20)}, ("webkb",)),
    "exon_intron": (DATA, {"SIZE": 5, "STEPS": 2}, ("exon_intron_nematode",)),
    "switching_series": (
        (),
        {"OUTER": 2, "POWERS": (0.1, 1.0), "HORIZONS": (1, 2), "CLASS_REGIMES": 2},
        ("switching_series",),
    ),
    "latent_dirichlet": ((*LATENT, "--sizes", "50"), {}, ("latent_dirichlet",)),
    "latent_iris": (LATENT, {}, ("latent_iris",)),
    "latent_gaussians": (
        (*LATENT, "--sizes", "50", "--scenarios", "1"),
        {},
        ("latent_gaussians",),
    ),
    "latent_boltzmann": ((*LATENT, "--sizes", "50"), {}, ("latent_boltzmann",)),
    "latent_gradient": (
        ("--starts", "2", "--sizes", "20", "--steps", "48"),
        {},
        ("latent_gradient",),
    ),
    "language_model": (
        (
            *DATA,
            "--vocabulary",
            "8",
            "--topics",
            "2",
            "--iterations",
            "5",
            "--starts",
            "2",
        )
        + ("--e-steps", "1", "--inner", "2", "--minutes", "10"),
        {},
        ("language_model_brown_18",),
    ),
    "motifs_pbm": (
        (*DATA, *MOTIFS, "--rates", "0.1", "--factors", "Egr2"),
        {},
        ("motifs_pbm_median",),
    ),
    "motifs_synthetic": ((*MOTIFS, "--rates", "0.1"), {}, ("motifs_synthetic",)),
    "m3e_orders": (
        (*DATA, "--train", "60", "--test", "60", "--images", "24", "--starts", "1"),
        {"RATES": {"motifs": (0.5,), "digits": (0.5,)}, "FACTORS": ("Egr2",)}
        | {"ORDERS": {"motifs": (1.0, 1e6), "digits": (1e6,)}}
        | {"STEPS": {"motifs": 5, "digits": 2}},
        ("m3e_orders_motifs", "m3e_orders_digits"),
    ),
    "digits_clutter": (
        (
            *DATA,
            "--train",
            "4",
            "--starts",
            "1",
            "--rates",
            "0.01",
            "--tasks",
            "digit 3",
        )
        + ("--features", "pixels"),
        {},
        ("digits_clutter_0.01",),
    ),
}
LONG = {
    "m3e_orders",
    "latent_dirichlet",
    "latent_boltzmann",
    "switching_series",
    "digits_clutter",
    "language_model",
}


def test_every_script_is_tried():
    own = {p.stem for p in HOME.glob("*.py") if not p.stem.startswith("_")}
    assert own - {"fetch", "summary"} == set(SCRIPTS)


def hasty(script, monkeypatch):
    """Less work for scripts without options for it."""
    if script.__name__ == "partial_rivals":
        few = {name: (X[::6], y[::6]) for name, (X, y) in script.load().items()}
        models = script.models

        def quick(X, **options):
            few, every = models(X, **options)
            for model in every.values():
                if hasattr(model, "max_rounds"):
                    model.max_rounds = 3
            return few, every

        monkeypatch.setattr(script, "load", lambda: few)
        monkeypatch.setattr(script, "models", quick)
    if script.__name__ == "switching_series":
        make = maxent.datasets.make_switching_series
        few = functools.partial(make, 4, 5, 10)
        monkeypatch.setattr(maxent.datasets, "make_switching_series", few)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.slow] * (n in LONG)) for n in SCRIPTS],
)
def test_a_script_writes_goes_on_and_refuses(name, load, rng, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib").use("Agg")
    words, constants, results = SCRIPTS[name]
    script = load(name)
    hasty(script, monkeypatch)
    for constant, value in constants.items():
        monkeypatch.setattr(script, constant, value)
    made_data(tmp_path, rng)
    out = tmp_path / "out"
    words = [str(tmp_path) if word == "FOLDER" else word for word in words]

    def call(*more):
        own = [f"{name}.py", "--out", str(out), *words, *more]
        monkeypatch.setattr(sys, "argv", own)
        script.main()

    call("--draws", "1")
    marked = {}
    for result in results:
        tables = list(out.glob(f"{result}*_table.csv"))
        assert tables and all(len(read(table)) for table in tables)
        # a number that a new run would not leave there
        rows = read(out / f"{result}.csv")
        numbers = [k for k, x in rows[0].items() if re.fullmatch(r"-?[\d.]+", x)]
        marked[result] = numbers[-1]
        rows[0][numbers[-1]] = "0.625"
        load("_results").write_rows(out / f"{result}.csv", rows)
    call("--draws", "2")
    for result, column in marked.items():
        rows = read(out / f"{result}.csv")
        assert rows[0][column] == "0.625"
        draws = {row.get("draw", row.get("split")) for row in rows}
        assert draws >= {"0", "1"} or "fit" in rows[0]
    with pytest.raises(SystemExit, match="other options: seed 0, not 1"):
        call("--seed", "1")


@pytest.mark.slow
def test_a_killed_script_leaves_whole_rows(tmp_path):
    env = {"PYTHONSAFEPATH": "", "MPLBACKEND": "agg"}
    words = (HOME / "latent_iris.py", "--starts", "3", "--out", tmp_path, "--draws")
    path, until = tmp_path / "latent_iris.csv", time.monotonic() + HUNG
    with start(*words, "50", env=env) as process:
        while time.monotonic() < until and not (path.exists() and len(read(path)) > 5):
            time.sleep(0.01)
        process.kill()
    kept = read(path)
    assert 5 < len(kept) < 100 and all(None not in row.values() for row in kept)
    draws = 1 + len({row["draw"] for row in kept})
    run(*words, draws, env=env)
    assert read(path)[: len(kept)] == kept and len(read(path)) == 2 * draws


def read(path):
    with open(path, encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_steps_along_the_gradient_are_those_of_the_likelihood(load, rng):
    script = load("latent_gradient")
    f, starts = script.features(), rng.normal(size=(3, 28))
    share = np.bincount(rng.integers(0, 32, size=40), minlength=32) / 40

    def likelihood(lam):
        p = np.exp(f @ lam)
        return share @ np.log(p.sum(axis=1) / p.sum())

    values, falls = script.gradient_ascent(f, share, starts, 1e-4, (0, 1))
    for k, lam in enumerate(starts):
        ends = [(likelihood(lam + e), likelihood(lam - e)) for e in 1e-5 * np.eye(28)]
        slope = np.array([a - b for a, b in ends]) / 2e-5
        assert values[0][k] == pytest.approx(likelihood(lam), abs=1e-12)
        expected = likelihood(lam + 1e-4 * slope)
        assert values[1][k] == pytest.approx(expected, abs=1e-11)
        assert values[1][k] > values[0][k]
    assert not falls.any()
    # a step across the valley falls, and is counted
    _, falls = script.gradient_ascent(f, share, starts, 1e3, (0, 20))
    assert falls.all()


def test_scaling_and_gradient_start_and_end_alike(load, rng):
    from maxent.latent import FiniteLatentModel

    script = load("latent_gradient")
    f, starts = script.features(), 0.1 * rng.normal(size=(2, 28))
    share = np.bincount(np.arange(32), minlength=32) / 32  # every row once
    model, y = FiniteLatentModel(f), np.arange(32)
    scaled = [script.scaling(model, y, starts, K, (16, 1600)) for K in (1, 16)]
    steep, _ = script.gradient_ascent(f, share, starts, 1.0, (1600,))
    for values in scaled:
        np.testing.assert_allclose(values[1600], steep[1600], atol=1e-3)
    # one E step, then sixteen inner steps: less than sixteen of both
    assert (scaled[1][16] <= scaled[0][16] + 1e-9).all()


def test_errors_at_a_horizon_are_of_what_validation_chooses(load, rng, monkeypatch):
    script = load("switching_series")
    for name, values in {"HORIZONS": (1, 2), "POWERS": (0.5, 1.0)}.items():
        monkeypatch.setattr(script, name, values)
    monkeypatch.setattr(script, "PENALTIES", (1.0, 9.0, 99.0))
    found = [(rng.random((4, 3)), rng.random((4, 3))) for _ in range(5)]
    out = script.slices(found)
    assert list(out) == ["T = 1", "T = 2", "rho = 0.5", "rho = 1"]
    for name, rows in (("T = 2", [2, 3]), ("rho = 0.5", [0, 2])):
        best = [
            min((v, e) for v, e in zip(inside[rows].flat, errors[rows].flat))
            for errors, inside in found
        ]
        assert out[name] == pytest.approx(np.mean([error for _, error in best]))


def test_a_digit_is_whole_at_one_of_its_places(load, rng):
    from sklearn.datasets import load_digits

    script = load("m3e_orders")
    cells, y = script.cluttered_digits(60, rng)
    assert cells.shape == (60, 8, 8, 4) and np.bincount(y).tolist() == [10] * 6
    X = cells.reshape(60, 8, 8, 2, 2).swapaxes(2, 3).reshape(60, 16, 16)
    X = X - X.min()
    digits = load_digits()
    for image, label in zip(X[:12], y[:12]):
        own = digits.images[digits.target == label] / 16.0
        places = [
            image[i : i + 8, j : j + 8] for i in range(0, 9, 2) for j in range(0, 9, 2)
        ]
        gaps = [np.abs(own - place).max(axis=(1, 2)).min() for place in places]
        assert min(gaps) < 1e-9


# -- data --------------------------------------------------------------------------
def test_data_are_known_by_their_content(load, rng, tmp_path, monkeypatch, capsys):
    fetch = load("fetch")
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    made_data(folder, rng)
    path, arrays = folder / "brown.csv.gz", folder / "digits_on_clutter.npz"
    sources = []
    for one in (path, arrays):
        (source,) = (s for s in fetch.SOURCES if s.file == one.name)
        size, code = fetch.content(one)
        sources.append(dataclasses.replace(source, size=size, sha256=code))
    monkeypatch.setattr(fetch, "SOURCES", sources)

    def asked(*words):
        monkeypatch.setattr(sys, "argv", ["fetch.py", str(tmp_path), *words])
        return fetch.main()

    assert asked() == 0
    text = gzip.decompress(path.read_bytes())
    path.write_bytes(gzip.compress(text, 1))  # other bytes, the same content
    with np.load(arrays) as data:
        np.savez_compressed(arrays, **dict(reversed(list(data.items()))))
    assert asked() == 0
    path.write_bytes(gzip.compress(text.replace(b"a", b"b", 1)))
    capsys.readouterr()
    assert asked() == 1
    said = capsys.readouterr().out
    assert "brown.csv.gz: has SHA-256" in said and "nltk" in said
    path.write_bytes(gzip.compress(text + b"x"))
    assert asked("brown.csv.gz") == 1 and "bytes, not" in capsys.readouterr().out
    path.write_bytes(path.read_bytes()[:-20])
    assert asked("brown.csv.gz") == 1 and "cannot be read" in capsys.readouterr().out
    path.unlink()
    arrays.unlink()
    assert asked() == 2
    assert asked("brown.csv.gz") == 1
    with pytest.raises(SystemExit, match="says where to get it"):
        fetch.found(folder, "brown.csv.gz")
    with pytest.raises(SystemExit):
        asked("brown")


# -- the pages ---------------------------------------------------------------------
DOCS = HOME.parents[1] / "docs" / "reproductions"
needs_docs = pytest.mark.skipif(not DOCS.is_dir(), reason="the docs are not there")


@needs_docs
def test_the_summary_is_that_of_the_results(load, tmp_path):
    summary = load("summary")
    lines = [summary.line(claim, DOCS) for claim in summary.CLAIMS["claim"]]
    assert read(DOCS / "summary.csv") == lines  # else run summary.py
    text = "".join(p.read_text("utf-8") for p in DOCS.glob("*.rst"))
    for claim in summary.CLAIMS["claim"]:
        assert f".. _reproduction-{claim['label']}:" in text


@needs_docs
def test_the_table_of_data_is_that_of_the_script(load):
    fetch = load("fetch")
    expected = [{k: str(v) for k, v in fetch.row(s).items()} for s in fetch.SOURCES]
    assert read(DOCS / "data.csv") == expected  # else run fetch.py --table


@needs_docs
def test_every_result_is_on_a_page_and_says_how_it_came_about():
    text = "".join(p.read_text("utf-8") for p in DOCS.glob("*.rst"))
    for path in (*DOCS.glob("*.csv"), *DOCS.glob("*.json")):
        assert re.search(rf"[ <`]{path.name}", text), path.name
    for path in DOCS.glob("*.json"):
        about = json.loads(path.read_text("utf-8"))
        assert {"command", "commit", "date", "seconds"} <= set(about), path.name
        assert "/work" not in about["command"] and "modified" not in about["commit"]


ANCHORS = {
    "crabs": ("--splits", "50", "--rows", "gaussians"),
    "latent_iris": (),
    "latent_dirichlet": (),
}


@needs_docs
@pytest.mark.slow
@pytest.mark.papers
@pytest.mark.parametrize("name", ANCHORS)
def test_a_cheap_experiment_gives_the_numbers_of_the_page(name, tmp_path):
    """Seeds are fixed: what differs is the last digits of another processor.

    They may turn a row or a choice, so every mean is held to half of its standard
    error on the page.
    """
    pytest.importorskip("matplotlib")
    env = {"PYTHONSAFEPATH": ""}  # the folder of the script is on the path
    run(HOME / f"{name}.py", *ANCHORS[name], "--out", tmp_path, env=env)
    ours, page = (read(folder / f"{name}_table.csv") for folder in (tmp_path, DOCS))
    page = {next(iter(row.values())): row for row in page}
    compared = 0
    for row in ours:
        for column, text in row.items():
            found, _, error = text.partition(" ± ")
            mean, _, tolerance = page[next(iter(row.values()))][column].partition(" ± ")
            assert bool(error) == bool(tolerance)
            if error:
                assert abs(float(found) - float(mean)) <= 0.5 * float(tolerance) + 1e-9
                compared += 1
    assert compared >= 16


def test_data_are_found_where_the_check_finds_them(load, tmp_path):
    found = load("fetch").found
    (tmp_path / "webkb").mkdir()
    (tmp_path / "webkb" / "webkb.csv.gz").touch()
    (tmp_path / "brown.csv.gz").touch()
    for name in ("webkb.csv.gz", "brown.csv.gz"):
        assert found(tmp_path, "other.csv", name).name == name
    with pytest.raises(SystemExit, match=r"holds no other\.csv"):
        found(tmp_path, "other.csv")


@pytest.mark.parametrize(
    ("name", "sets"),
    [("splice_tree", ("human", "primate")), ("exon_intron", ("nematode", "human"))],
)
def test_a_folder_of_both_sets_has_a_choice(name, sets, load, monkeypatch):
    script, asked = load(name), []

    def found(folder, *names):
        asked.append(names)
        raise FileNotFoundError

    monkeypatch.setattr(script, "found", found)
    for which in (None, *sets):
        with pytest.raises(FileNotFoundError):
            script.load("folder", which)
    first, second = (script.FILES[which] for which in sets)
    assert asked == [(first, second), (first,), (second,)]


def test_a_claim_counts_all_its_runs(load):
    summary = load("summary")
    claims = summary.CLAIMS["claim"]
    several = next(c for c in claims if c["label"] == "anomaly-latent")
    found = summary.line(several, summary.HOME)
    assert "--latent" in found["command"] and "--onward" in found["command"]
    part = next(c for c in claims if c["label"] == "curves")
    assert "--rows curves" in summary.line(part, summary.HOME)["command"]
    total = summary._count(claims, "", "")
    papers = {claim["where"].split(",")[0] for claim in claims}
    assert sum(summary._count(claims, paper, "") for paper in papers) == total
