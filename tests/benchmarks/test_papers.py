"""The scripts of published experiments: how they hang together, what they compute."""

import ast
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


@pytest.mark.slow
def test_the_tables_of_the_crabs_are_written(tmp_path):
    pytest.importorskip("matplotlib")
    env = {"PYTHONSAFEPATH": ""}  # the folder of the script is on the path
    run(HOME / "crabs.py", "--splits", "2", "--out", tmp_path, env=env, timeout=600)
    written = {path.name for path in tmp_path.iterdir()}
    rows = ("kernels", "gaussians", "others", "curves")
    assert {f"crabs_{name}.md" for name in (*rows, "compared")} <= written
    text = (tmp_path / "crabs_compared.md").read_text("utf-8")
    assert "| linear discriminant |" in text and "| SVM, linear |" in text
