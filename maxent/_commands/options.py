"""Options of ``maxent fit`` that become parameters of an estimator.

Imports nothing heavy: help texts are made of this table.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["FOR_SEQUENCES", "OPTIONS", "Option", "add_options", "given_options"]


@dataclass(frozen=True)
class Option:
    """An option and the parameter that it sets.

    Attributes
    ----------
    dest : str
        Its destination in the parsed arguments.
    default : object
        Its default for the help, or a dict of them by name of the estimator, "" for all
        others; an empty dict shows none.
    text : str
        What it means.
    type : callable, optional
        Of argparse; that of the default where it is a number.
    flags : tuple of str, optional
        By default the destination with dashes.
    params : tuple of str, optional
        Parameters of which the estimator has one; by default the destination.
    metavar, choices : optional
        Of argparse.
    """

    dest: str
    default: Any
    text: str
    type: Callable[[str], Any] | None = None
    flags: tuple[str, ...] = ()
    params: tuple[str, ...] = ("",)
    metavar: str | None = None
    choices: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        default = self.default if isinstance(self.default, dict) else {"": self.default}
        first = next(iter(default.values()), None)
        kind = type(first) if isinstance(first, (int, float)) else None
        flag = f"--{self.dest.replace('_', '-')}"
        vars(self).update(
            default=default,
            type=self.type or kind,
            flags=self.flags or (flag,),
            params=tuple(name or self.dest for name in self.params),
        )

    @property
    def flag(self) -> str:
        """The flag that messages name."""
        return self.flags[-1]

    def help(self, name: str = "", kinds: dict[str, Any] | None = None) -> str:
        """Meaning and defaults; of one estimator, by kind of data, where it is named.

        A default of a kind that is None is the one that the table has.
        """
        defaults = self.default
        if kinds is not None:
            own = self.default.get(name, self.default.get(""))
            by_kind = {k: own if v is None else v for k, v in kinds.items()}
            defaults = {k: v for k, v in by_kind.items() if _is_shown(v)}
            values = [*defaults.values()]
            if len(by_kind) == 1 or values[1:] == values[:-1]:  # all alike
                defaults = {"": values[0]} if values else {}
        names: dict[str, list[str]] = {}
        for kind, value in defaults.items():
            shown = f"{value:g}" if isinstance(value, float) else str(value).lower()
            names.setdefault(shown, []).append(kind)
        parts = [f"{'/'.join(n)} {shown}".strip() for shown, n in names.items()]
        text = f"{self.text} (default: {'; '.join(parts)})" if parts else self.text
        return text.replace("%", "%%")

    def add_to(self, group: argparse._ArgumentGroup) -> None:
        """Add the option to a parser."""
        settings: dict[str, Any] = {"action": "store_true"}
        if self.type is not bool:
            settings = {"type": self.type, "choices": self.choices}
            settings["metavar"] = self.metavar
        group.add_argument(
            *self.flags,
            dest=self.dest,
            default=argparse.SUPPRESS,
            help=self.help(),
            **settings,
        )


def _is_shown(value: Any) -> bool:
    """True if a default of a class says something in a help text."""
    return value != "" and isinstance(value, (bool, int, float, str))


def _number_or(*words: str, kind: type = float) -> Callable[[str], Any]:
    """Type of an option that takes some words or a number; "none" is None."""

    def parse(text: str) -> Any:
        text = "flat" if text == "kkt" else text  # an older word
        if text in words:
            return None if text == "none" else text
        try:
            return kind(text)
        except ValueError:
            number = "an integer" if kind is int else "a number"
            raise argparse.ArgumentTypeError(
                f"{text!r} is not known; use {', '.join(words)} or {number}"
            ) from None

    return parse


def _positive(text: str) -> float:
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not > 0")
    return value


def _assignment(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=VALUE")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


_SEQUENCES = "parameters for sequences"  # which a table of rows has no use for
_GROUPS = {
    "parameters of classifiers and regressors": (
        Option(
            *("kernel", "rbf", "of the kernel machines"),
            choices=("rbf", "linear", "poly", "sigmoid"),
        ),
        Option(
            "C",
            {"": 1.0, "gaussian": 3.0, "bayesnet": 3.0, "tree": 5.0, "motif": 80.0},
            "bound of every multiplier, > 0",
            flags=("-C", "--C"),
        ),
        Option(
            *("margin", "exponential"),
            "exponential, laplace, gaussian, erlang, logistic, hinge or fixed",
        ),
        Option("sharpness", 10.0, "how closely the loss follows the hinge, > 1"),
        Option(
            *("bias", "flat", "flat, none, or the variance of its prior"),
            type=_number_or("flat", "none"),
        ),
        Option(
            *("gamma", "scale", "width of the kernel: scale, auto or a number"),
            type=_number_or("scale", "auto"),
        ),
        Option("degree", 3, "of the poly kernel"),
        Option("coef0", 0.0, "of the poly and sigmoid kernels"),
        Option(
            *("class_weight", None),
            "balanced, or weights such as yes:3,no:1; other classes have 1",
            metavar="WEIGHTS",
        ),
        Option("epsilon", 0.1, "half width of the tube of regressions"),
        Option("prior_inclusion", 0.1, "a selector's prior probability of a feature"),
        Option("ess", 1.0, "pseudo-counts of the tables of bayesnet, tree and chowliu"),
        Option(
            *("class_prior", {"partial": None, "chowliu": "empirical"}),
            "probability of the second class for rows without a label, or labelled "
            "(their share); of chowliu empirical or uniform",
            type=_number_or("labelled", "empirical", "uniform"),
        ),
        Option(
            *("machine", "classifier", "that partial trains"),
            params=(),
            choices=("classifier", "selector", "gaussian", "bayesnet", "tree"),
        ),
    ),
    "parameters of outlier detectors, mixtures and other densities": (
        Option(
            *("level", None),
            "log-likelihood, or ratio of them, that rows are to reach "
            "(gaussian/bayesnet/tree, outliers)",
            type=float,
        ),
        Option(
            *("outlier_model", "gaussian"),
            "of tables: multinomial and tree take categories",
            params=("model",),
            choices=("gaussian", "multinomial", "tree", "mixture"),
        ),
        Option(
            *("quantile", 0.5),
            "of the rows' log-likelihoods, that sets the level of outliers",
        ),
        Option(
            *("contamination", None),
            "share of outliers in the training rows, which sets the threshold; set "
            "it, or a third of the rows and more are outliers",
            type=float,
        ),
        Option("n_components", 1, "of a mixture", flags=("--components",)),
        Option(
            *("covariance_type", "full", "of a mixture"),
            flags=("--covariance",),
            choices=("full", "diag", "spherical"),
        ),
        Option(
            *("n_hidden", {"boltzmann": 2, "rbm": 4}),
            "units that are not in the table",
            flags=("--hidden",),
        ),
        Option(
            *("selection", "entropy", "which of the candidates is kept"),
            choices=("entropy", "likelihood"),
        ),
    ),
    _SEQUENCES: (
        Option(
            *("sequence_model", "hmm"),
            "what is fitted to each sequence: a hidden Markov model, or a Markov chain",
            params=(),
            choices=("hmm", "markov"),
        ),
        Option(
            *("alphabet", None, "such as ACGT; none is those that occur"),
            metavar="LETTERS",
        ),
        Option(
            *("unknown", {}),
            "letters that stand for an unknown one (default: of nucleic acids N and "
            "the other codes of IUPAC, of proteins X, B, Z and J, of others none)",
            params=("missing",),
            metavar="LETTERS",
        ),
        Option(
            *("n_states", {"outliers": 2}),
            "of each hidden Markov model; of the classifier by the length of its "
            "sequence",
            flags=("--states",),
        ),
        Option("order", 1, "of the Markov chains"),
        Option(
            *("smoothing", {"classifier": 0.01, "outliers": 1.0}),
            "pseudo-counts, >= 0",
            params=("smoothing", "pseudo_count"),
        ),
        Option(
            *("em_tol", 1e-8),
            "a fit of a hidden Markov model ends once a step gains so little, relative "
            "to its log-likelihood, > 0",
            params=(),
            type=_positive,
        ),
        Option("rho", 0.5, "power of the kernel, > 0"),
        Option(
            *("horizon", "mean"),
            "compare strings of HORIZON + 1 letters; mean is the mean length, and 5 to "
            "20 are often better for long sequences",
            type=_number_or("mean", kind=int),
        ),
        Option("width", {}, "letters of the motif", type=int),
        Option("background", 2, "order of the motif's background counts"),
        Option(
            *("pos_label", {}),
            "class of the sequences that have the motif; the last in sorted order by "
            "default",
            flags=("--positive",),
            metavar="LABEL",
        ),
        Option(
            *("both_strands", {}),
            "look for the motif in the reverse complement, too",
            type=bool,
        ),
        Option(
            *("alpha", 8.0),
            "order of the Renyi entropy: from inf, the best place, to 0, all places",
        ),
    ),
    "parameters of the solver": (
        Option(
            "n_init",
            {
                **dict.fromkeys(("mixture", "dirichlet", "boltzmann", "rbm"), 20),
                **{"motif": 4, "outliers": 3, "partial": 1},
            },
            "starts, of which the best is kept; of sequences of each hidden Markov "
            "model",
            flags=("--starts",),
        ),
        Option("seed", 0, "of random starts and folds", params=("random_state",)),
        Option(
            "tol",
            {
                **{"": 1e-8, "classifier": 1e-3, "regressor": 1e-3},
                **dict.fromkeys(("selector", "regression_selector"), 1e-6),
                **{"logistic": 1e-6, "partial": 1e-2, "mixture": 1e-6},
                **{"dirichlet": 1e-6, "boltzmann": 1e-6, "rbm": 1e-6, "motif": 1e-4},
                "outliers of sequences": 1e-6,
            },
            "tolerance of the certificate",
        ),
        Option(
            "max_iter",
            {
                **dict.fromkeys(("classifier", "regressor"), 10_000_000),
                **dict.fromkeys(("selector", "regression_selector"), 500),
                **{"gaussian": 200, "bayesnet": 200, "outliers": 200, "tree": 1000},
                **{"logistic": 100, "mixture": 10_000, "dirichlet": 10_000},
                **{"boltzmann": 5000, "rbm": 5000, "motif": 200},
                "outliers of sequences": 2000,
            },
            "bound on the iterations",
        ),
        Option(
            *("cache_size", 500, "memory for kernel values"), type=float, metavar="MB"
        ),
        Option(
            *("n_jobs", None, "threads, -1 for all cores"),
            type=int,
            flags=("--jobs",),
            metavar="JOBS",
        ),
    ),
}
OPTIONS = {option.dest: option for group in _GROUPS.values() for option in group}
FOR_SEQUENCES = {option.dest for option in _GROUPS[_SEQUENCES]}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options, in their groups, and ``--set``."""
    for title, options in _GROUPS.items():
        group = parser.add_argument_group(title)
        for option in options:
            option.add_to(group)
    group.add_argument(
        "--set",
        action="append",
        type=_assignment,
        default=[],
        metavar="NAME=VALUE",
        help="any other parameter of the estimator, VALUE in JSON or plain text, such "
        "as --set tempering=0.5 (may be repeated)",
    )


def given_options(
    args: argparse.Namespace,
) -> dict[str, tuple[str, tuple[str, ...], Any]]:
    """Return the options the user gave: destination -> flag, parameters and value."""
    given = {
        option.dest: (option.flag, option.params, vars(args)[option.dest])
        for option in OPTIONS.values()
        if option.dest in vars(args)
    }
    for name, value in getattr(args, "set", []):
        given[f"set {name}"] = (f"--set {name}", (name,), value)
    return given
