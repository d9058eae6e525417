"""The scripts of published experiments: how they hang together, what they compute."""

import ast
import gzip
import pathlib
import sys

import numpy as np
import pytest
from processes import run

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


@pytest.mark.slow
def test_the_tables_of_the_crabs_are_written(tmp_path):
    pytest.importorskip("matplotlib")
    env = {"PYTHONSAFEPATH": ""}  # the folder of the script is on the path
    run(HOME / "crabs.py", "--splits", "2", "--out", tmp_path, env=env)
    written = {path.name for path in tmp_path.iterdir()}
    rows = ("kernels", "gaussians", "others", "curves")
    assert {f"crabs_{name}.md" for name in (*rows, "compared")} <= written
    text = (tmp_path / "crabs_compared.md").read_text("utf-8")
    assert "| linear discriminant |" in text and "| SVM, linear |" in text


def probes(folder, rng, n=300):
    """An array like those of the challenge: one factor, some spots flagged bad."""
    import gzip

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
    found = script.column(records, ("0", 1.0), "test")
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


LATENT = {
    "dirichlet": ("--sizes", "50"),
    "gaussians": ("--sizes", "50", "--scenarios", "1"),
    "iris": (),
    "boltzmann": ("--sizes", "50"),  # and the ascents of its second table
}


SCRIPTS = """
import runpy, sys
sys.path.insert(0, {home!r})
for script in {scripts}:
    sys.argv = list(map(str, script))
    runpy.run_path(script[0], run_name="__main__")
"""


@pytest.mark.parametrize(
    "names",
    [list(LATENT)[:3], pytest.param(["boltzmann"], marks=pytest.mark.slow)],
    ids="-".join,
)
def test_the_tables_of_latent_maximum_entropy_are_written(names, tmp_path):
    pytest.importorskip("matplotlib")
    few = ["--draws", "1", "--starts", "3", "--out", str(tmp_path)]
    scripts = [[str(HOME / f"latent_{n}.py"), *few, *LATENT[n]] for n in names]
    run("-c", SCRIPTS.format(home=str(HOME), scripts=scripts))
    for name in names:
        text = (tmp_path / f"latent_{name}.md").read_text("utf-8")
        assert "| 50 |" in text or (name == "iris" and "| MLE" in text)
        assert (tmp_path / f"latent_{name}.png").exists()
        assert (tmp_path / f"latent_{name}.csv").exists()


@pytest.mark.slow
def test_the_tables_of_the_motifs_are_written(rng, tmp_path):
    pytest.importorskip("matplotlib")
    probes(tmp_path, rng)
    few = ["--draws", "2", "--train", "60", "--test", "60", "--starts", "1"]
    few += ["--alphas", "0.25", "--rates", "0.1", "--factors", "Egr2"]
    options = ["--data", tmp_path, "--out", tmp_path, *few]
    env = {"PYTHONSAFEPATH": ""}
    run(HOME / "motifs_pbm.py", *options, env=env)
    text = (tmp_path / "motifs_pbm_median.md").read_text("utf-8")
    assert "| Egr2 | 0.1 |" in text and "| latent SVM |" in text
    assert (tmp_path / "motifs_pbm_median.png").exists()


@pytest.mark.slow
def test_the_tables_of_synthetic_motifs_are_written(tmp_path):
    pytest.importorskip("matplotlib")
    few = ["--draws", "1", "--train", "60", "--test", "60", "--starts", "1"]
    few += ["--alphas", "0.25", "--rates", "0.1", "--out", tmp_path]
    env = {"PYTHONSAFEPATH": ""}
    run(HOME / "motifs_synthetic.py", *few, env=env)
    text = (tmp_path / "motifs_synthetic.md").read_text("utf-8")
    assert "| occupancy | 0.1 |" in text and "| planted | 0.1 |" in text


@pytest.mark.slow
def test_the_tables_of_the_digits_are_written(rng, tmp_path):
    pytest.importorskip("matplotlib")
    y = np.arange(60) % 6
    position = rng.integers(0, 29, size=(60, 2))
    X = rng.integers(0, 32, size=(60, 56, 56), dtype=np.uint8)
    np.savez(tmp_path / "digits_on_clutter.npz", X=X, y=y, position=position)
    few = ["--draws", "1", "--train", "4", "--starts", "1", "--rates", "0.01"]
    few += ["--tasks", "3", "--features", "pixels"]
    options = ["--data", tmp_path, "--out", tmp_path, *few]
    env = {"PYTHONSAFEPATH": ""}
    run(HOME / "digits_clutter.py", *options, env=env)
    text = (tmp_path / "digits_clutter.md").read_text("utf-8")
    assert "| alpha = inf, path |" in text


@pytest.mark.slow
def test_the_table_of_the_language_models_is_written(rng, tmp_path):
    import gzip

    words = [rng.choice(list("abcdefgh"), size=60) for _ in range(20)]
    rows = [f"{i},news,{' '.join(w)}" for i, w in enumerate(words)]
    with gzip.open(tmp_path / "brown.csv.gz", "wt", encoding="utf-8") as stream:
        stream.write("\n".join(["document,category,text", *rows, ""]))
    few = ["--vocabulary", "8", "--topics", "2", "--iterations", "5", "--starts", "2"]
    few += ["--e-steps", "1", "--inner", "2", "--minutes", "10"]
    options = ["--data", tmp_path, "--out", tmp_path, *few]
    env = {"PYTHONSAFEPATH": ""}
    run(HOME / "language_model.py", *options, env=env)
    text = (tmp_path / "language_model_brown.md").read_text("utf-8")
    assert "| interpolated trigram |" in text
    assert "| EM-IS, RLME of all starts |" in text and "| iterations |" in text


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
    normal, scores, support = script.latent_draw(codes, true, rng, starts=1)
    assert normal.sum() == 30 and len(scores) == 6
    for name, (train, test) in scores.items():
        assert len(train) == 50 and len(test) == 60
        assert script.bayes_of(name) in scores
        assert 0 < support[name] <= 50
    assert script.bayes_of("MED, quantile 0.2, C 1") == "Bayes posterior"
    script.draw(normal, scores, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 1000


def test_rivals_on_rows_without_labels_of_little_data(load, tmp_path, monkeypatch):
    script = load("partial_rivals")
    full = script.load()
    assert [len(X) for X, _ in full.values()] == [200, 683]
    few = {name: (X[::6], y[::6]) for name, (X, y) in full.items()}
    monkeypatch.setattr(script, "load", lambda: few)
    models = script.models

    def hasty(X, **options):
        few, every = models(X, **options)
        for model in every.values():
            if hasattr(model, "max_rounds"):
                model.max_rounds = 3
        return few, every

    monkeypatch.setattr(script, "models", hasty)
    options = ["--out", str(tmp_path), "--draws", "2"]
    monkeypatch.setattr(sys, "argv", ["partial_rivals.py", *options])
    script.main()
    lines = (tmp_path / "partial_rivals.csv").read_text("utf-8").splitlines()
    methods = {line.split(",", 2)[2].rpartition(",")[0] for line in lines[1:]}
    assert len(lines) == 1 + 2 * 2 * len(methods) and len(methods) == 8
    assert all(0.0 <= float(line.rpartition(",")[2]) <= 100.0 for line in lines[1:])
    assert "± " in (tmp_path / "partial_rivals.md").read_text("utf-8")


def test_partly_labelled_splice_sites_of_little_data(load, rng, tmp_path, monkeypatch):
    script = load("splice_partial")
    for name, size in (("TRAIN", 30), ("LABELLED", 5)):
        monkeypatch.setattr(script, name, size)
    for name in ("TRUE_TEST", "FALSE_TEST"):
        monkeypatch.setattr(script, name, 20)
    rows = ["site,label,sequence"]
    for k in range(110):
        share = [0.55, 0.15, 0.15, 0.15] if k % 2 else [0.25] * 4
        letters = "".join(rng.choice(list("ACGT"), 140, p=share))
        rows.append(f"donor,{k % 2},{letters}")
    with gzip.open(tmp_path / "human_sites.csv.gz", "wt", encoding="ascii") as stream:
        stream.write("\n".join(rows))
    out = tmp_path / "out"
    options = ["--data", str(tmp_path), "--out", str(out), "--draws", "2"]
    monkeypatch.setattr(sys, "argv", ["splice_partial.py", *options])
    script.main()
    names = {path.name for path in out.iterdir()}
    assert names == {f"splice_partial.{end}" for end in ("md", "csv", "png")}
    areas = (out / "splice_partial.csv").read_text("utf-8").splitlines()
    assert len(areas) == 1 + 2 * len(script.KERNELS) * len(script.MODELS)
    assert all(0.0 <= float(line.split(",")[-1]) <= 1.0 for line in areas[1:])
