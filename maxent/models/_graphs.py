"""Nets and trees as graphs: of networkx, and as text of GraphViz."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

_DRAWN = 5.0  # width of the line of an edge of probability one, in points


@dataclass(frozen=True)
class Graph:
    """Nodes and edges with their attributes, in order.

    Attributes
    ----------
    directed : bool
    nodes : dict {name: dict}
    edges : dict {(name, name): dict}
    """

    directed: bool
    nodes: dict[Any, dict[str, Any]]
    edges: dict[tuple[Any, Any], dict[str, Any]]

    def to_networkx(self) -> Any:
        """Graph of networkx, or an error that says how to get it."""
        try:
            import networkx
        except ImportError:
            raise ImportError(
                "networkx is not installed; `pip install networkx`, or take "
                "to_graphviz, which needs nothing."
            ) from None
        out = networkx.DiGraph() if self.directed else networkx.Graph()
        out.add_nodes_from(self.nodes.items())
        out.add_edges_from((*pair, own) for pair, own in self.edges.items())
        return out

    def to_graphviz(self) -> str:
        """Text in the language DOT."""
        kind, arrow = ("digraph", "->") if self.directed else ("graph", "--")
        out = [f"{kind} {{"]
        for name, own in self.nodes.items():
            style = {} if own.get("observed", True) else {"style": "dashed"}
            out.append(f"  {_quoted(name)}{_listed(style)};")
        for (u, v), own in self.edges.items():
            out.append(f"  {_quoted(u)} {arrow} {_quoted(v)}{_listed(_style(own))};")
        return "\n".join([*out, "}"]) + "\n"


def _style(own):
    """Attributes of GraphViz of an edge: its number, and lines as wide as likely."""
    if "probability" in own:
        p = own["probability"]
        return {"label": f"{p:.2f}", "penwidth": f"{max(_DRAWN * p, 0.1):.2f}"}
    coefficient = own.get("coefficient")
    if coefficient is not None and np.size(coefficient) == 1:
        return {"label": f"{float(np.reshape(coefficient, ())):.3g}"}
    return {}


def _listed(attributes):
    if not attributes:
        return ""
    return f" [{', '.join(f'{k}={_quoted(x)}' for k, x in attributes.items())}]"


def _quoted(name):
    text = str(name).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{text}"'


class NetGraph:
    """Mixin of nets: a subclass says what nodes and edges it has."""

    @abstractmethod
    def _graph(self) -> Graph:
        """Nodes and edges."""

    def to_networkx(self) -> Any:
        """Return the net as a graph of networkx.

        Returns
        -------
        networkx.DiGraph or networkx.Graph
            A node for each node of the net, in its order, with the attribute
            ``observed``; of categories ``n_categories``, and in a Bayes net ``parents``
            and ``table``, the conditional probabilities with an axis for each parent
            and the last one for the node; of Gaussians ``size``, ``offset`` and
            ``cov``, and on the edges ``coefficient`` (child, parent). In a random field
            nodes that share a factor have an edge.

        Raises
        ------
        ImportError
            If networkx is not installed.
        """
        return self._graph().to_networkx()

    def to_graphviz(self) -> str:
        """Return the net as text in GraphViz's language DOT.

        Returns
        -------
        str
            For the command ``dot``, or ``graphviz.Source``. Hidden nodes are dashed,
            and edges between Gaussian numbers have their coefficients.
        """
        return self._graph().to_graphviz()
