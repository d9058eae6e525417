"""Tables of parameters for notebooks, and of versions."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

import maxent
from maxent._installation import versions
from maxent._support.tables import html_table
from maxent.discrimination import SpanningTrees
from maxent.families import Gaussian, Independent, NormalGamma, Poisson, Product
from maxent.minentropy import Motif
from maxent.models import BayesNet, CategoricalHMM, Mixture


class Reader(HTMLParser):
    """Cells of a table, and whether every tag is closed in its turn."""

    def __init__(self, text):
        super().__init__()
        self.open, self.cells = [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        assert not any(name.startswith("on") for name, _ in attrs)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open:
            self.cells[-1] += data


def values():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 3))
    yield Gaussian(np.zeros((40, 3)), np.eye(3))
    yield Independent(Poisson([[1.0, 2.0]]))
    yield Product({0: Poisson([1.0]), (1, 2): Gaussian(np.zeros((1, 2)), np.eye(2))})
    yield Mixture.fit(X, n_components=2, random_state=0)
    yield CategoricalHMM([0.5, 0.5], np.eye(2), np.eye(2), "<&", missing='"')
    yield BayesNet([("<b>", [0.5, 0.5])])
    yield SpanningTrees.fit(rng.integers(0, 2, (20, 6)))
    yield NormalGamma(np.zeros(2), np.eye(2), 2.0, 1.0)
    yield Motif(np.full((20, 4), 0.25))


@pytest.mark.parametrize("value", list(values()), ids=lambda x: type(x).__name__)
def test_tables_are_whole_escaped_and_short(value):
    text = value._repr_html_()
    found = Reader(text)
    assert found.open == [] and found.cells[0] == type(value).__name__
    assert len(found.cells) > 1 and max(map(len, found.cells)) <= 200
    assert len(text) < 5000
    own = dict(zip(found.cells[1::2], found.cells[2::2], strict=True))
    parameters = getattr(value, "get_spec", getattr(value, "parameters", dict))()
    assert set(parameters) & set(own)
    if isinstance(value, CategoricalHMM):
        assert own["alphabet"] == "'<&'" and "<&" not in text
    if isinstance(value, Mixture):
        assert "converged after" in own["fit_result"]


def test_large_arrays_have_their_range():
    cells = Reader(
        html_table("T", {"a": np.arange(100.0), "b": np.full(20, np.nan)})
    ).cells
    assert cells == ["T", "a", "array (100,) from 0 to 99", "b", "array (20,)"]


def test_versions(capsys):
    maxent.show_versions()
    text = capsys.readouterr().out
    for name in ("numpy", "scipy", "scikit-learn", "numba", "threadpoolctl"):
        assert re.search(rf"^ *{name}: \d+\.\d+", text, re.MULTILINE), name
    assert f"maxent: {maxent.__version__}, with" in text
    found = versions()
    assert any("blas" in name for name in found["Libraries"])
    assert found["System"]["python"] in text and found["System"]["processor"]
