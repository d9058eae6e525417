"""The command ``maxent``: fit, predict, info and a demonstration.

Exit codes: 0 done; 1 the fit did not reach its tolerance (the model is written all the
same); 2 wrong usage, or a file or standard output that cannot be read or written; 3 the
file asked for is written, but standard output cannot be; 130 interrupted; 141 the
reader of standard output has left.  Codes 2 and 3 come with one sentence on standard
error.  Heavy imports are inside the functions, so that ``maxent --help`` answers at
once.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from maxent._support.console import OutputError, discard, show, tell


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    argv : list of str, default=None
        Arguments; None takes those of the process.

    Returns
    -------
    code : int
        The exit code.
    """
    try:
        return _main(argv)
    except BrokenPipeError:  # the reader of our output has left
        discard(sys.stdout)
        return 141
    except OutputError as error:
        tell(f"maxent: {_no_output(error)}")
        return 2


def _main(argv: Sequence[str] | None) -> int:
    """Parse and run; every foreseen failure becomes one sentence and a code."""
    try:
        args = _parser().parse_args(argv)
    except SystemExit as end:  # --help, --version or wrong usage
        return int(end.code or 0)
    args.given = {
        name: (flags[-1], vars(args)[name])
        for name, (flags, _) in PARAMETERS.items()
        if name in vars(args)
    }
    args.given_of_sequences = {
        flags[-1]: vars(args)[name]
        for name, (flags, _) in SEQUENCE_PARAMETERS.items()
        if name in vars(args)
    }
    try:
        return _run(args)
    except BrokenPipeError:
        raise
    except OutputError as error:
        return _fail(args, _no_output(error))
    except OSError as error:
        if error.filename is not None and error.strerror:
            return _fail(args, f"{error.filename}: {error.strerror}")
        return _fail(args, error)
    except MemoryError as error:
        return _fail(args, f"not enough memory ({_one_line(error) or 'no details'})")
    except KeyboardInterrupt:
        return _fail(args, "interrupted", code=130)


def _run(args: argparse.Namespace) -> int:
    from maxent import _commands

    try:
        outcome = getattr(_commands, args.command)(args)
    except _commands.CommandError as error:
        return _fail(args, error)
    try:
        if outcome.report:
            show(outcome.report)
    except OutputError as error:
        if outcome.written is None:
            raise
        message = f"{_no_output(error)}; {outcome.written} is written all the same"
        return _fail(args, message, code=outcome.code or 3)
    return outcome.code


def _no_output(error: OutputError) -> str:
    return f"standard output cannot be written ({error})"


def _fail(args: argparse.Namespace, message: object, code: int = 2) -> int:
    tell(f"maxent {args.command}: {_one_line(message)}")
    return code


def _one_line(message: object) -> str:
    return " ".join(str(message).split())


# -------------------------------------------------------------------------- usage


class _Parser(argparse.ArgumentParser):
    def print_help(self, file: object = None) -> None:
        show(self.format_help())

    def error(self, message: str) -> NoReturn:
        tell(f"{self.prog}: {_one_line(message)} (see {self.prog} --help)")
        self.exit(2)


class _Version(argparse.Action):
    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> NoReturn:
        import maxent

        show(f"maxent {maxent.__version__}\n")
        parser.exit()


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


# Options of `fit` that become parameters of the estimator, if they are given.
PARAMETERS: dict[str, tuple[list[str], dict[str, Any]]] = {
    "kernel": (["--kernel"], {"choices": ["rbf", "linear", "poly", "sigmoid"]}),
    "C": (["-C", "--C"], {"type": float, "help": "bound of every multiplier, > 0"}),
    "margin": (
        ["--margin"],
        {"help": "exponential, laplace, gaussian, erlang, logistic, hinge or fixed"},
    ),
    "sharpness": (
        ["--sharpness"],
        {"type": float, "help": "how closely the loss follows the hinge, > 1"},
    ),
    "bias": (
        ["--bias"],
        {"type": _bias, "help": "flat, none, or the variance of its prior"},
    ),
    "gamma": (
        ["--gamma"],
        {"type": _gamma, "help": "width of the kernel: scale, auto or a number"},
    ),
    "degree": (["--degree"], {"type": int, "help": "of the poly kernel"}),
    "coef0": (["--coef0"], {"type": float, "help": "of the poly and sigmoid kernels"}),
    "epsilon": (
        ["--epsilon"],
        {"type": float, "help": "half width of the regressor's tube"},
    ),
    "prior_inclusion": (
        ["--prior-inclusion"],
        {"type": float, "help": "the selector's prior probability of a feature"},
    ),
    "tol": (["--tol"], {"type": float, "help": "tolerance of the certificate"}),
    "max_iter": (["--max-iter"], {"type": int, "help": "bound on the iterations"}),
    "cache_size": (
        ["--cache-size"],
        {"type": float, "metavar": "MB", "help": "memory for kernel values"},
    ),
    "n_jobs": (
        ["--jobs"],
        {"type": int, "metavar": "JOBS", "help": "threads, -1 for all cores"},
    ),
}

# Options of `fit` for sequences: the kernel between models of them.
SEQUENCE_PARAMETERS: dict[str, tuple[list[str], dict[str, Any]]] = {
    "sequence_model": (
        ["--sequence-model"],
        {
            "choices": ["hmm", "markov"],
            "help": "what is fitted to each sequence: a hidden Markov model (default), "
            "or a Markov chain",
        },
    ),
    "alphabet": (
        ["--alphabet"],
        {"metavar": "LETTERS", "help": "such as ACGT (default: those that occur)"},
    ),
    "unknown": (
        ["--unknown"],
        {"metavar": "LETTERS", "help": "that stand for an unknown one, such as N"},
    ),
    "n_states": (
        ["--states"],
        {"type": int, "help": "of each hidden Markov model (default: by its length)"},
    ),
    "order": (["--order"], {"type": int, "help": "of the Markov chains (default: 1)"}),
    "smoothing": (["--smoothing"], {"type": float, "help": "pseudo-counts, >= 0"}),
    "rho": (["--rho"], {"type": float, "help": "power of the kernel, > 0"}),
    "horizon": (
        ["--horizon"],
        {
            "type": _horizon,
            "help": "compare strings of HORIZON + 1 letters (default: the mean length)",
        },
    ),
    "seed": (["--seed"], {"type": int, "help": "of the starts of EM (default: 0)"}),
}


def _parser() -> _Parser:
    parser = _Parser(
        prog="maxent",
        allow_abbrev=False,
        description="Maximum entropy discrimination for svmlight, CSV and sequence "
        "files.",
    )
    parser.add_argument(
        "--version", action=_Version, nargs=0, help="print the version and exit"
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    demo = _command(commands, "demo", "compare machines on bundled data")
    demo.add_argument(
        "-o",
        "--output",
        metavar="PICTURE",
        default="maxent-demo.png",
        help="picture to write, .png, .pdf or .svg (default: %(default)s)",
    )
    demo.add_argument("--no-picture", action="store_true", help="write no picture")
    demo.add_argument(
        "--seed", type=int, default=0, help="seed of the split (default: 0)"
    )

    fit = _command(commands, "fit", "train on a data file, write a model file")
    fit.add_argument(
        "data", metavar="DATA", help="svmlight, CSV or sequence file, with labels"
    )
    fit.add_argument("model", metavar="MODEL", help="model file to write")
    fit.add_argument(
        "--estimator",
        choices=["classifier", "regressor", "selector"],
        default="classifier",
        help="what to train (default: %(default)s)",
    )
    fit.add_argument(
        "--standardize",
        action="store_true",
        help="scale every feature to mean 0 and variance 1 (svmlight: variance only); "
        "the scales become part of the model",
    )
    fit.add_argument(
        "--progress",
        action=argparse.BooleanOptionalAction,
        help="progress lines on standard error (default: if it is a terminal)",
    )
    _file_options(fit)
    group = fit.add_argument_group("parameters of the estimator, with its own defaults")
    for name, (flags, options) in PARAMETERS.items():
        group.add_argument(*flags, dest=name, default=argparse.SUPPRESS, **options)
    group = fit.add_argument_group("parameters of the kernel between sequences")
    for name, (flags, options) in SEQUENCE_PARAMETERS.items():
        group.add_argument(*flags, dest=name, default=argparse.SUPPRESS, **options)

    predict = _command(commands, "predict", "apply a model file to a data file")
    predict.add_argument("model", metavar="MODEL")
    predict.add_argument("data", metavar="DATA", help="svmlight, CSV or sequence file")
    predict.add_argument(
        "-o", "--output", metavar="OUT", help="CSV file to write (default: print it)"
    )
    what = predict.add_mutually_exclusive_group()
    what.add_argument("--decision", action="store_true", help="write decision values")
    what.add_argument("--proba", action="store_true", help="write probabilities")
    predict.add_argument(
        "--no-label", action="store_true", help="the file has no label column"
    )
    _file_options(predict)

    info = _command(commands, "info", "check a model file and print its contents")
    info.add_argument("model", metavar="MODEL")
    return parser


def _command(
    commands: argparse._SubParsersAction[_Parser], name: str, text: str
) -> _Parser:
    return commands.add_parser(
        name, help=text, description=text.capitalize() + ".", allow_abbrev=False
    )


def _file_options(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--label",
        metavar="NAME|INDEX",
        help="label column of a CSV file, by name or number counted from 0, negative "
        "from the end (default: the last)",
    )
    command.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        help="whether the first row of a CSV file holds names (default: detected)",
    )
    command.add_argument(
        "--format",
        choices=["auto", "svmlight", "csv", "sequences"],
        default="auto",
        help="format of the data file (default: detected; sequences by an ending such "
        "as .fasta, .fa or .seq): FASTA with the label as the last word of each "
        "header, or lines of a sequence and its label",
    )


if __name__ == "__main__":
    sys.exit(main())
