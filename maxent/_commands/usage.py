"""The parser of ``maxent``: commands, examples, help.  Imports nothing heavy."""

from __future__ import annotations

import argparse
import itertools
import json
import textwrap
from collections.abc import Sequence
from typing import Any, NoReturn

import maxent
from maxent._commands.arguments import (
    add_compare,
    add_demo,
    add_evaluate,
    add_fit,
    add_predict,
    add_quiet,
)
from maxent._commands.catalog import SEQUENCES, TABLES
from maxent._commands.console import show, tell
from maxent._commands.options import OPTIONS

__all__ = ["EXIT_CODES", "commands_of", "make_parser"]

_OF_TABLE_FILES = (
    *("label", "id", "header", "decimal", "impute", "text", "ignore", "weights"),
    *("drop_unlabelled",),
)
_OF_SEQUENCE_FILES = ("negative", "keep_case")
EXIT_CODES = {
    0: "done",
    1: "the fit did not reach its tolerance; the model is written all the same",
    2: "wrong usage, or a file or standard output that cannot be read or written",
    3: "the file asked for is written, but standard output cannot be",
    130: "interrupted",
    141: "the reader of standard output has left",
}
_SHELLS = ("bash", "zsh", "tcsh")
_EXAMPLES = {
    "": """\
maxent demo
maxent fit train.csv model.npz --label sex --standardize
maxent predict model.npz test.csv -o predictions.csv
maxent evaluate model.npz test.csv
maxent compare train.csv --label sex
maxent info model.npz
maxent --print-completion bash > ~/.local/share/bash-completion/completions/maxent""",
    "demo": """\
maxent demo --list
maxent demo
maxent demo motif -o motif.pdf""",
    "fit": """\
maxent fit train.csv model.npz --label sex --standardize -C 10
maxent fit train.csv -v 5 --label sex           (an error estimate, no model)
maxent fit cars.csv model.npz --estimator tree --label class
maxent fit patients.csv model.npz --label ill --id patient --weights w
maxent fit train.csv model.npz --class-weight yes:3,no:1 --probability
maxent fit points.csv model.npz --estimator outliers --contamination 0.05
maxent fit some-labels.csv model.npz --estimator partial
zcat huge.svm.gz | maxent fit - model.npz --format svmlight --kernel linear
maxent fit genes.fasta model.npz --states 2 --horizon 9
maxent fit sites.fasta model.npz --estimator motif --width 8
maxent fit bound.fa model.npz --estimator motif --width 8 --negative background.fa
maxent fit --estimator motif --help             (what applies to one estimator)""",
    "predict": """\
maxent predict model.npz test.csv
maxent predict model.npz test.csv.gz -o predictions.csv --probability
maxent predict model.npz patients.csv --id patient
maxent predict motif.npz sites.fasta --places
maxent predict detector.npz new.csv --explain --top 20
cut -d, -f2- test.csv | maxent predict model.npz - --no-label""",
    "evaluate": """\
maxent evaluate model.npz test.csv
maxent evaluate model.npz test.csv --plot test.png
maxent evaluate detector.npz labelled.csv --label anomaly --top 20
maxent evaluate motif.npz bound.fa --negative background.fa""",
    "compare": """\
maxent compare train.csv --label sex --standardize
maxent compare train.csv --label sex --estimators classifier,gaussian,forest --cv 10
maxent compare prices.csv --label price --scoring mae""",
    "info": """\
maxent info model.npz
maxent info --json model.npz""",
}


class _Parser(argparse.ArgumentParser):
    def _print_message(self, message: str, file: object = None) -> None:
        show(message)  # of --help and --version

    def parse_args(  # type: ignore[override]  # of the overloads that are used
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> argparse.Namespace:
        """Parse; options that a command does not have are its own errors."""
        found, unknown = self.parse_known_args(args, namespace)
        if unknown:
            home = commands_of(self).get(vars(found).get("command", ""), self)
            home.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found

    def error(self, message: str) -> NoReturn:
        tell(f"{self.prog}: {' '.join(message.split())} (see {self.prog} --help)")
        self.exit(2)


class _Completion(argparse.Action):
    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> NoReturn:
        try:
            import shtab
        except ImportError:
            parser.error(
                f"{option_string} needs the package shtab; install it by pip install "
                '"maxent[completion]"'
            )
        for command in commands_of(parser).values():
            for action in command._actions:
                if action.dest in ("data", "model", "output", "negative", "plot"):
                    action.complete = shtab.FILE  # type: ignore[attr-defined]
        show(shtab.complete(parser, str(values)))
        parser.exit()


def commands_of(
    parser: argparse.ArgumentParser,
) -> dict[str, argparse.ArgumentParser]:
    """Parsers of the commands, by name."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def make_parser(argv: Sequence[str] = ()) -> argparse.ArgumentParser:
    """The parser of ``maxent``.

    Parameters
    ----------
    argv : sequence of str, default=()
        Arguments: where they ask for the help of an estimator, the help of ``fit``
        shows what applies to it only.
    """
    parser = _Parser(
        prog="maxent",
        allow_abbrev=False,
        description="Maximum-entropy learning for tables (svmlight, CSV, text) and "
        "sequences.",
        epilog=_examples(""),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--version",
        action="version",
        version=f"maxent {maxent.__version__}",
        help="print the version and exit",
    )
    parser.add_argument(
        "--print-completion",
        action=_Completion,
        choices=_SHELLS,
        metavar="SHELL",
        help="print what makes bash, zsh or tcsh complete the command, and exit",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    add_demo(_command(commands, "demo", "show a method on bundled or made data"))
    fit = _command(commands, "fit", "train on a data file, write a model file")
    add_fit(fit)
    if {"-h", "--help"} & {*argv}:
        _narrow(fit, _named_estimator(argv))
    add_predict(_command(commands, "predict", "apply a model file to a data file"))
    add_evaluate(
        _command(commands, "evaluate", "judge a model by the labels of a data file")
    )
    add_compare(
        _command(commands, "compare", "try several estimators on a table, no model")
    )
    info = _command(commands, "info", "check a model file and print its contents")
    info.add_argument("model", metavar="MODEL")
    info.add_argument("--json", action="store_true", help="print one JSON object")
    add_quiet(info, "print nothing: the exit code tells")
    return parser


def _examples(command: str) -> str:
    return _listed(_EXAMPLES[command].splitlines())


def _listed(lines: list[str]) -> str:
    return "\n".join(["examples:", *(f"  {line}" for line in lines)])


def _command(
    commands: argparse._SubParsersAction[Any], name: str, text: str
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=text,
        description=text.capitalize() + ".",
        allow_abbrev=False,
        epilog=_examples(name),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return parser


def _named_estimator(argv: Sequence[str]) -> str:
    """The value of --estimator, whether or not the arguments can be parsed."""
    found = ""
    for flag, value in itertools.pairwise([*argv, ""]):
        name, equals, joined = flag.partition("=")
        if name == "--estimator":
            found = joined if equals else value
    return found


def _narrow(fit: argparse.ArgumentParser, name: str) -> None:
    """Leave in the help of ``fit`` what applies to one estimator, with its defaults."""
    if name not in {*TABLES, *SEQUENCES}:
        return
    from maxent._commands.parameters import applicable, rest

    known = applicable(name)
    for action in fit._actions:
        if action.dest in OPTIONS:
            defaults = known.get(action.dest)
            fits = defaults is not None
            if fits:
                action.help = OPTIONS[action.dest].help(name, defaults)
        else:
            fits = _is_of(action.dest, name)
            if action.dest == "label" and name in TABLES and not TABLES[name].labels:
                action.help = (
                    "column of known labels, which is no feature: predict and evaluate "
                    "judge the model by it"
                )
        if not fits:
            action.help = argparse.SUPPRESS
    catalogs = {"tables": TABLES, "sequences": SEQUENCES}
    texts = {k: c[name].text for k, c in catalogs.items() if name in c}
    alike = len({*texts.values()}) == 1
    shown = [texts[k] if alike else f"of {k}: {texts[k]}" for k in texts]
    fit.description = f"Train --estimator {name}: {'; '.join(dict.fromkeys(shown))}."
    lines = [line for line in _EXAMPLES["fit"].splitlines() if f" {name} " in line]
    fit.epilog = "\n".join(
        [_rest_of(rest(name)), *(["", _listed(lines)] if lines else [])]
    ).strip()


def _is_of(dest: str, name: str) -> bool:
    """True if an option of data files, columns or folds is of use to an estimator."""
    spec = TABLES.get(name) or SEQUENCES[name]
    needed = {
        "cv": spec.labels is not None,
        "probability": spec.labels == "classes",
        "drop_unlabelled": spec.labels in ("classes", "numbers"),
        "standardize": not spec.categories,
        "bins": spec.categories or name in ("outliers", "partial"),
        **dict.fromkeys(_OF_SEQUENCE_FILES, name in SEQUENCES),
        **dict.fromkeys(_OF_TABLE_FILES, name in TABLES),
    }
    if dest in ("standardize", "bins") and name not in TABLES:
        return False
    return needed.get(dest, True)


def _rest_of(parameters: dict[str, Any]) -> str:
    """Paragraph about the parameters that --set reaches."""
    if not parameters:
        return ""
    shown = [f"{name}={json.dumps(_plain(v))}" for name, v in parameters.items()]
    text = f"by --set, with their defaults: {', '.join(shown)}"
    return textwrap.fill(text, 78, break_long_words=False, break_on_hyphens=False)


def _plain(value: Any) -> Any:
    return value if isinstance(value, (bool, int, float, str)) or value is None else "?"
