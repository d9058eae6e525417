"""Options of ``maxent fit`` that become parameters of an estimator.

Imports nothing heavy: help texts are made of these tables.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["GROUPS", "OPTIONS", "Option", "add_options", "given_options"]


@dataclass(frozen=True)
class Option:
    """An option and the parameter that it sets.

    Attributes
    ----------
    flags : tuple of str
    text : str
        What it means.
    param : str
        Parameter of the estimator.
    default : dict of str to object
        Its default, by name of the estimator on the command line; "" for all others.
    group : str
        A key of `GROUPS`.
    settings : dict
        Of argparse.
    """

    flags: tuple[str, ...]
    text: str
    param: str
    default: dict[str, Any]
    group: str
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def flag(self) -> str:
        """The flag that messages name."""
        return self.flags[-1]

    def help(self) -> str:
        """Meaning and defaults."""
        common = [_shown(self.default[""])] if "" in self.default else []
        others: dict[str, list[str]] = {}
        for name, value in self.default.items():
            if name:
                others.setdefault(_shown(value), []).append(name)
        parts = common + [f"{'/'.join(names)} {x}" for x, names in others.items()]
        text = f"{self.text} (default: {'; '.join(parts)})" if parts else self.text
        return text.replace("%", "%%")


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)


# -------------------------------------------------------------------------- values


def _gamma(text: str) -> str | float:
    return text if text in ("scale", "auto") else _float(text, "scale, auto")


def _bias(text: str) -> str | float | None:
    if text in ("flat", "kkt", "none"):  # "kkt" is an older word for "flat"
        return None if text == "none" else "flat"
    return _float(text, "flat, none")


def _horizon(text: str) -> str | int:
    if text == "mean":
        return text
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not known; use mean or an integer"
        ) from None


def _float(text: str, words: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not known; use {words} or a number"
        ) from None


def _positive(text: str) -> float:
    value = _float(text, "inf")
    if not value > 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not > 0")
    return value


def _class_prior(text: str) -> str | float:
    words = ("labelled", "empirical", "uniform")
    return text if text in words else _float(text, ", ".join(words))


def _assignment(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=VALUE")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


# --------------------------------------------------------------------------- tables

GROUPS = {
    "machine": "parameters of classifiers and regressors",
    "density": "parameters of outlier detectors, mixtures and other densities",
    "sequence": "parameters for sequences",
    "solver": "parameters of the solver",
}


def _option(
    group: str,
    param: str,
    flags: str,
    text: str,
    default: Any = ...,
    *,
    type: Callable[[str], Any] | None = None,
    **settings: Any,
) -> Option:
    if default is ...:
        default = {}
    elif not isinstance(default, dict):
        default = {"": default}
    if type is not None:
        settings["type"] = type
    return Option(tuple(flags.split()), text, param, default, group, settings)


_MARGINS = "exponential, laplace, gaussian, erlang, logistic, hinge or fixed"
_GENERATIVE = "/".join(("gaussian", "bayesnet", "tree"))
_FEW_STEPS = {"gaussian": 200, "bayesnet": 200, "outliers": 200}

# By destination in the parsed arguments.
OPTIONS: dict[str, Option] = {
    "kernel": _option(
        *("machine", "kernel", "--kernel", "of the kernel machines", "rbf"),
        choices=["rbf", "linear", "poly", "sigmoid"],
    ),
    "C": _option(
        *("machine", "C", "-C --C", "bound of every multiplier, > 0"),
        {"": 1.0, "gaussian": 3.0, "bayesnet": 3.0, "tree": 5.0, "motif": 100.0},
        type=float,
    ),
    "margin": _option("machine", "margin", "--margin", _MARGINS, "exponential"),
    "sharpness": _option(
        *("machine", "sharpness", "--sharpness"),
        *("how closely the loss follows the hinge, > 1", 10.0),
        type=float,
    ),
    "bias": _option(
        *("machine", "bias", "--bias", "flat, none, or the variance of its prior"),
        "flat",
        type=_bias,
    ),
    "gamma": _option(
        *(
            "machine",
            "gamma",
            "--gamma",
            "width of the kernel: scale, auto or a number",
        ),
        "scale",
        type=_gamma,
    ),
    "degree": _option(
        "machine", "degree", "--degree", "of the poly kernel", 3, type=int
    ),
    "coef0": _option(
        *("machine", "coef0", "--coef0", "of the poly and sigmoid kernels", 0.0),
        type=float,
    ),
    "class_weight": _option(
        *("machine", "class_weight", "--class-weight"),
        *("balanced, or weights such as yes:3,no:1; other classes have 1", None),
        metavar="WEIGHTS",
    ),
    "epsilon": _option(
        *("machine", "epsilon", "--epsilon", "half width of the regressor's tube", 0.1),
        type=float,
    ),
    "prior_inclusion": _option(
        *("machine", "prior_inclusion", "--prior-inclusion"),
        *("the selector's prior probability of a feature", 0.1),
        type=float,
    ),
    "ess": _option(
        *("machine", "ess", "--ess"),
        *("pseudo-counts of the tables of bayesnet, tree and chowliu", 1.0),
        type=float,
    ),
    "class_prior": _option(
        *("machine", "class_prior", "--class-prior"),
        "probability of the second class for rows without a label, or labelled (their "
        "share); of chowliu empirical or uniform",
        {"partial": None, "chowliu": "empirical"},
        type=_class_prior,
    ),
    "machine": _option(
        *("machine", "", "--machine", "that partial trains", "classifier"),
        choices=["classifier", "selector", "gaussian", "bayesnet", "tree"],
    ),
    "level": _option(
        *("density", "level", "--level"),
        f"log-likelihood, or ratio of them, that rows are to reach ({_GENERATIVE}, "
        "outliers)",
        None,
        type=float,
    ),
    "outlier_model": _option(
        *("density", "model", "--outlier-model"),
        *("of tables: multinomial and tree take categories", "gaussian"),
        choices=["gaussian", "multinomial", "tree", "mixture"],
    ),
    "quantile": _option(
        *("density", "quantile", "--quantile"),
        *("of the rows' log-likelihoods, that sets the level of outliers", 0.5),
        type=float,
    ),
    "contamination": _option(
        *("density", "contamination", "--contamination"),
        "share of outliers in the training rows, which sets the threshold; set "
        "it, or a third of the rows and more are outliers",
        None,
        type=float,
    ),
    "n_components": _option(
        "density", "n_components", "--components", "of a mixture", 1, type=int
    ),
    "covariance_type": _option(
        *("density", "covariance_type", "--covariance", "of a mixture", "full"),
        choices=["full", "diag", "spherical"],
    ),
    "n_hidden": _option(
        *("density", "n_hidden", "--hidden", "units that are not in the table"),
        {"boltzmann": 2, "rbm": 4},
        type=int,
    ),
    "selection": _option(
        *("density", "selection", "--selection"),
        *("which of the candidates is kept", "entropy"),
        choices=["entropy", "likelihood"],
    ),
    "sequence_model": _option(
        *("sequence", "", "--sequence-model"),
        "what is fitted to each sequence: a hidden Markov model, or a Markov chain",
        "hmm",
        choices=["hmm", "markov"],
    ),
    "alphabet": _option(
        *(
            "sequence",
            "alphabet",
            "--alphabet",
            "such as ACGT; none is those that occur",
        ),
        None,
        metavar="LETTERS",
    ),
    "unknown": _option(
        *("sequence", "missing", "--unknown"),
        *(
            "letters that stand for an unknown one (default: of nucleic acids N and "
            "the other codes of IUPAC, of others none)",
            ...,
        ),
        metavar="LETTERS",
    ),
    "n_states": _option(
        *("sequence", "n_states", "--states"),
        "of each hidden Markov model; of the classifier by the length of its sequence",
        {"outliers": 2},
        type=int,
    ),
    "order": _option(
        "sequence", "order", "--order", "of the Markov chains", 1, type=int
    ),
    "smoothing": _option(
        *("sequence", "smoothing", "--smoothing", "pseudo-counts, >= 0"),
        {"classifier": 0.01, "outliers": 1.0},
        type=float,
    ),
    "em_tol": _option(
        *("sequence", "", "--em-tol"),
        "a fit of a hidden Markov model ends once a step gains so little, relative to "
        "its log-likelihood, > 0",
        1e-8,
        type=_positive,
    ),
    "rho": _option(
        "sequence", "rho", "--rho", "power of the kernel, > 0", 0.5, type=float
    ),
    "horizon": _option(
        *("sequence", "horizon", "--horizon"),
        "compare strings of HORIZON + 1 letters; mean is the mean length, and 5 to 20 "
        "are often better for long sequences",
        "mean",
        type=_horizon,
    ),
    "width": _option("sequence", "width", "--width", "letters of the motif", type=int),
    "background": _option(
        *("sequence", "background", "--background"),
        *("order of the motif's background counts", 2),
        type=int,
    ),
    "pos_label": _option(
        *("sequence", "pos_label", "--positive"),
        "class of the sequences that have the motif; the last in sorted order by "
        "default",
        metavar="LABEL",
    ),
    "both_strands": _option(
        *("sequence", "both_strands", "--both-strands"),
        *("look for the motif in the reverse complement, too", ...),
        action="store_true",
    ),
    "alpha": _option(
        *("sequence", "alpha", "--alpha"),
        *(
            "order of the Renyi entropy: from inf, the best place, to 0, all places",
            float("inf"),
        ),
        type=float,
    ),
    "n_init": _option(
        *("solver", "n_init", "--starts"),
        "starts, of which the best is kept; of sequences of each hidden Markov model",
        {
            "mixture": 20,
            "dirichlet": 20,
            "boltzmann": 20,
            "rbm": 20,
            "motif": 4,
            "outliers": 3,
        },
        type=int,
    ),
    "seed": _option(
        *("solver", "random_state", "--seed", "of random starts and folds", 0),
        type=int,
    ),
    "tol": _option(
        *(
            "solver",
            "tol",
            "--tol",
            "tolerance of the certificate; outliers of sequences 1e-6",
        ),
        {
            **{"": 1e-8, "classifier": 1e-3, "regressor": 1e-3, "selector": 1e-6},
            **{"logistic": 1e-6, "partial": 1e-2, "mixture": 1e-6, "dirichlet": 1e-6},
            **{"boltzmann": 1e-6, "rbm": 1e-6, "motif": 1e-4},
        },
        type=float,
    ),
    "max_iter": _option(
        *(
            "solver",
            "max_iter",
            "--max-iter",
            "bound on the iterations; outliers of sequences 2000",
        ),
        {
            **{"classifier": 10_000_000, "regressor": 10_000_000, "selector": 500},
            **_FEW_STEPS,
            **{"tree": 1000, "logistic": 100, "mixture": 10_000, "dirichlet": 10_000},
            **{"boltzmann": 5000, "rbm": 5000, "motif": 200},
        },
        type=int,
    ),
    "cache_size": _option(
        *("solver", "cache_size", "--cache-size", "memory for kernel values", 500),
        type=float,
        metavar="MB",
    ),
    "n_jobs": _option(
        *("solver", "n_jobs", "--jobs", "threads, -1 for all cores", None),
        type=int,
        metavar="JOBS",
    ),
}

# Options that a table of rows has no use for.
_ONLY_SEQUENCES = [name for name, o in OPTIONS.items() if o.group == "sequence"]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options, in their groups, and ``--set``."""
    groups = {name: parser.add_argument_group(title) for name, title in GROUPS.items()}
    for dest, option in OPTIONS.items():
        groups[option.group].add_argument(
            *option.flags,
            dest=dest,
            default=argparse.SUPPRESS,
            help=option.help(),
            **option.settings,
        )
    groups["solver"].add_argument(
        "--set",
        action="append",
        type=_assignment,
        default=[],
        metavar="NAME=VALUE",
        help="any other parameter of the estimator, VALUE in JSON or plain text, such "
        "as --set tempering=0.5 (may be repeated)",
    )


def given_options(args: argparse.Namespace) -> dict[str, tuple[str, str, Any]]:
    """Return the options the user gave: destination -> flag, parameter and value."""
    given = {
        dest: (option.flag, option.param, vars(args)[dest])
        for dest, option in OPTIONS.items()
        if dest in vars(args)
    }
    assigned: Sequence[tuple[str, Any]] = getattr(args, "set", [])
    for name, value in assigned:
        given[f"set {name}"] = (f"--set {name}", name, value)
    return given


def is_for_sequences(dest: str) -> bool:
    """True if an option means nothing for a table."""
    return dest in _ONLY_SEQUENCES
