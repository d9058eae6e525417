"""Nets and trees as graphs of networkx and as text of GraphViz."""

import re

import numpy as np
import pytest
from refusals import refused

from maxent.discrimination import DirichletTrees, SpanningTrees
from maxent.models import BayesNet, LinearGaussianNetwork, MarkovRandomField

STATEMENT = re.compile(
    r'  "(?P<u>(?:[^"\\]|\\.)*)"(?: (?P<arrow>->|--) "(?P<v>(?:[^"\\]|\\.)*)")?'
    r"(?: \[(?P<own>[^\]]*)\])?;"
)


def read_dot(text):
    """Kind, nodes and edges with attributes; every line follows DOT's grammar."""
    first, *lines, last = text.splitlines()
    assert last == "}"
    nodes, edges = {}, {}
    for line in lines:
        found = STATEMENT.fullmatch(line)
        assert found, line
        own = dict(re.findall(r'(\w+)="([^"]*)"', found["own"] or ""))
        u, v = (x and re.sub(r"\\(.)", r"\1", x) for x in (found["u"], found["v"]))
        if v is None:
            nodes[u] = own
        else:
            assert found["arrow"] == ("->" if first == "digraph {" else "--")
            edges[u, v] = own
    return first, nodes, edges


def bayes_net():
    return BayesNet(
        [
            (("cause", 'a "b"'), [[0.8, 0.2], [0.1, 0.9]]),
            ("cause", [0.9, 0.1]),
            (("cause", 'a "b"', "c"), np.full((2, 2, 3), 1 / 3)),
        ],
        observed=['a "b"', "c"],
    )


def field():
    agree = np.eye(2)
    factors = [
        (("a", "b"), agree),
        (("b", "c", "d"), np.zeros((2, 2, 2))),
        ("d", [0, 1]),
    ]
    return MarkovRandomField(factors, observed=["a", "b", "c"])


def gaussian():
    return LinearGaussianNetwork(
        ["h", ("x", 2), "y"],
        coefficients={("x", "h"): [[1.0], [0.0]], ("y", "h"): -2.5},
        covs={"h": 1.0, "x": np.eye(2), "y": 0.5},
        observed=["x", "y"],
    )


NETS = {
    "net": (bayes_net, {("cause", 'a "b"'), ("cause", "c"), ('a "b"', "c")}),
    "field": (field, {("a", "b"), ("b", "c"), ("b", "d"), ("c", "d")}),
    "gaussian": (gaussian, {("h", "x"), ("h", "y")}),
}


@pytest.mark.parametrize("name", NETS)
def test_nets(name):
    networkx = pytest.importorskip("networkx")
    make, edges = NETS[name]
    net = make()
    graph = net.to_networkx()
    assert graph.is_directed() == (name != "field")
    if name == "field":
        assert {tuple(sorted(e)) for e in graph.edges} == edges
    else:
        assert set(graph.edges) == edges
        assert networkx.is_directed_acyclic_graph(graph)
    hidden = {n for n, shown in graph.nodes(data="observed") if not shown}
    assert hidden == {"cause", "d", "h"} & set(graph.nodes)
    kind, nodes, drawn = read_dot(net.to_graphviz())
    assert kind == ("graph {" if name == "field" else "digraph {")
    assert list(nodes) == list(graph.nodes) and set(drawn) == set(edges)
    assert {n for n, own in nodes.items() if own} == hidden


def test_attributes_are_those_of_the_net():
    pytest.importorskip("networkx")
    net = bayes_net()
    graph = net.to_networkx()
    for (*parents, own), table in net.factors:
        assert graph.nodes[own]["parents"] == tuple(parents)
        assert set(graph.predecessors(own)) == set(parents)
        np.testing.assert_array_equal(graph.nodes[own]["table"], table)
    again = BayesNet(
        [((*own["parents"], n), own["table"]) for n, own in graph.nodes.items()],
        observed=net.observed,
    )
    assert again == net
    graph = gaussian().to_networkx()
    assert graph.edges["h", "y"]["coefficient"].tolist() == [[-2.5]]
    assert graph.edges["h", "x"]["coefficient"].shape == (2, 1)
    _, _, edges = read_dot(gaussian().to_graphviz())
    assert edges == {("h", "x"): {}, ("h", "y"): {"label": "-2.5"}}


@pytest.mark.parametrize("kind", [SpanningTrees, DirichletTrees])
def test_trees(kind, rng):
    networkx = pytest.importorskip("networkx")
    X = rng.integers(0, 2, (40, 5))
    X[:, 1] = X[:, 0]
    prior = (
        SpanningTrees.fit(X) if kind is SpanningTrees else DirichletTrees(4.0, [2] * 5)
    )
    trees = prior.posterior(X)
    graph = trees.to_networkx(list("abcde"))
    shares = networkx.to_numpy_array(graph, weight="probability")
    np.testing.assert_allclose(shares, trees.edge_probabilities)
    best = [(u, v) for u, v, own in graph.edges(data="best") if own]
    assert sorted(best) == [
        ("abcde"[u], "abcde"[v]) for u, v in sorted(trees.best_tree.tolist())
    ]
    assert networkx.is_tree(graph.edge_subgraph(best))
    few = trees.to_networkx(least=1.0)
    assert set(few.nodes) == set(range(5)) and few.number_of_edges() >= 4
    _, nodes, edges = read_dot(trees.to_graphviz("abcde", least=0.2))
    assert list(nodes) == list("abcde")
    for (u, v), own in edges.items():
        p = graph.edges[u, v]["probability"]
        assert own["label"] == f"{p:.2f}" and (p >= 0.2 or graph.edges[u, v]["best"])
    refused(lambda: trees.to_graphviz(["a", "b"]), "feature_names=.* must hold 5")


def test_without_networkx_the_error_says_what_to_do(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(ImportError, match=r"pip install networkx.*to_graphviz"):
        field().to_networkx()
    assert field().to_graphviz().startswith("graph {")
