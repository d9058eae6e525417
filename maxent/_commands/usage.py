"""The options of every command, with defaults and examples.  Imports nothing heavy."""

from __future__ import annotations

import argparse
import itertools
import json
import textwrap
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import maxent
from maxent._commands.catalog import BASELINES, SCORINGS, SEQUENCES, TABLES
from maxent._commands.console import show, tell
from maxent._commands.options import OPTIONS, add_options

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
    _add_demo(_command(commands, "demo", "show a method on bundled or made data"))
    fit = _command(commands, "fit", "train on a data file, write a model file")
    _add_fit(fit)
    if {"-h", "--help"} & {*argv}:
        _narrow(fit, _named_estimator(argv))
    _add_predict(_command(commands, "predict", "apply a model file to a data file"))
    _add_evaluate(
        _command(commands, "evaluate", "judge a model by the labels of a data file")
    )
    _add_compare(
        _command(commands, "compare", "try several estimators on a table, no model")
    )
    info = _command(commands, "info", "check a model file and print its contents")
    info.add_argument("model", metavar="MODEL")
    info.add_argument("--json", action="store_true", help="print one JSON object")
    _add_quiet(info, "print nothing: the exit code tells")
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


def _add_quiet(parser: argparse.ArgumentParser, text: str) -> None:
    parser.add_argument("-q", "--quiet", action="store_true", help=text)


def _add_demo(demo: argparse.ArgumentParser) -> None:
    from maxent._commands.demos import DEMOS

    demo.add_argument(
        "name",
        metavar="NAME",
        nargs="?",
        choices=list(DEMOS),
        default="discriminate",
        help=f"{', '.join(DEMOS)} (default: %(default)s)",
    )
    demo.add_argument("--list", action="store_true", help="what there is, and exit")
    demo.add_argument(
        "-o",
        "--output",
        metavar="PICTURE",
        help="picture to write, .png, .pdf or .svg (default: maxent-demo.png, or "
        "maxent-demo-NAME.png)",
    )
    demo.add_argument("--no-picture", action="store_true", help="write no picture")
    demo.add_argument(
        "--seed",
        type=int,
        default=0,
        dest="demo_seed",
        help="seed of the split or of the made data (default: 0)",
    )
    _add_quiet(demo, "print no report")


def _add_fit(fit: argparse.ArgumentParser) -> None:
    fit.add_argument(
        "data",
        metavar="DATA",
        help="svmlight, CSV or sequence file, with labels; - is standard input",
    )
    fit.add_argument(
        "model",
        metavar="MODEL",
        nargs="?",
        help="model file to write; not with -v only",
    )
    fit.add_argument(
        "--estimator",
        choices=list(dict.fromkeys([*TABLES, *SEQUENCES])),
        default="classifier",
        metavar="NAME",
        help=f"of tables: {', '.join(TABLES)}; of sequences: {', '.join(SEQUENCES)} "
        "(default: %(default)s)",
    )
    _add_folds(fit)
    _add_columns(fit)
    fit.add_argument(
        "--progress",
        action=argparse.BooleanOptionalAction,
        help="progress lines on standard error (default: if it is a terminal)",
    )
    fit.add_argument(
        "--json", action="store_true", help="print the report as one JSON object"
    )
    _add_quiet(fit, "print no report and no progress")
    _add_file_options(fit)
    add_options(fit)


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


def _add_folds(fit: argparse.ArgumentParser) -> None:
    """Add options that estimate on rows left out of a fit."""
    fit.add_argument(
        "-v",
        "--cv",
        type=int,
        metavar="K",
        help="estimate the error by K-fold cross-validation",
    )
    fit.add_argument(
        "--probability",
        action="store_true",
        help="calibrate probabilities on rows left out of the fit (sigmoid, 5 folds)",
    )


def _add_columns(fit: argparse.ArgumentParser) -> None:
    """Add options that change columns before the fit."""
    fit.add_argument(
        "--standardize",
        action="store_true",
        help="scale every feature to mean 0 and variance 1 (svmlight: variance only); "
        "the scales become part of the model",
    )
    fit.add_argument(
        "--impute",
        action="store_true",
        help="fill missing numbers (empty, ?, NA) by the median of their column; "
        "missing text is a category, and bayesnet, tree and chowliu need no filling",
    )
    _add_list(
        fit,
        "--text",
        "columns of a CSV file that are text, whatever they hold, by name or number "
        "(default: those of which more than half of the cells are no numbers)",
    )
    _add_list(fit, "--ignore", "columns to leave out, by name or number")
    fit.add_argument(
        "--bins",
        type=_whole(2),
        metavar="K",
        help="make K bins of about as many rows of every column of more than K "
        "different numbers, for bayesnet, tree and chowliu",
    )
    fit.add_argument(
        "--drop-unlabelled",
        action="store_true",
        help="leave out rows without a label (empty, ?, NA)",
    )
    fit.add_argument(
        "--weights",
        metavar="NAME|INDEX",
        help="column of the rows' weights, >= 0; of a weight of 2 a row counts twice",
    )


def _add_list(command: argparse.ArgumentParser, flag: str, text: str) -> None:
    """An option that takes names between commas, and may be given several times."""
    command.add_argument(
        flag,
        action="extend",
        type=lambda names: [names],  # split where the columns of the file are known
        default=[],
        metavar="NAME,...",
        help=text,
    )


def _add_predict(predict: argparse.ArgumentParser) -> None:
    predict.add_argument("model", metavar="MODEL")
    predict.add_argument(
        "data",
        metavar="DATA",
        help="svmlight, CSV or sequence file; - is standard input",
    )
    predict.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        help="CSV file to write, .gz too (default: print it)",
    )
    _add_values(predict)
    predict.add_argument(
        "--places",
        action="store_true",
        help="of a motif: add the likeliest place of its first letter, counted from 1, "
        "and the strand where both are read",
    )
    predict.add_argument(
        "--no-label", action="store_true", help="the file has no label column"
    )
    predict.add_argument(
        "--json",
        action="store_true",
        help="print what is found as one JSON object; the predictions go to -o OUT",
    )
    _add_quiet(predict, "say nothing of errors in labelled rows")
    _add_file_options(predict)


def _add_evaluate(evaluate: argparse.ArgumentParser) -> None:
    evaluate.add_argument("model", metavar="MODEL")
    evaluate.add_argument(
        "data", metavar="DATA", help="data file with labels; - is standard input"
    )
    evaluate.add_argument(
        "--plot",
        metavar="PICTURE",
        help="picture to write, .png, .pdf or .svg: confusions, ROC and calibration of "
        "classes, errors of numbers, scores of detectors",
    )
    evaluate.add_argument(
        "--top",
        type=_whole(1),
        metavar="N",
        help="of a detector: call the N rows of lowest scores outliers, whatever its "
        "threshold",
    )
    _add_positive(evaluate)
    evaluate.add_argument("--json", action="store_true", help="print one JSON object")
    _add_quiet(evaluate, "print nothing: for --plot")
    _add_file_options(evaluate)
    evaluate.set_defaults(no_label=False)


def _add_compare(compare: argparse.ArgumentParser) -> None:
    compare.add_argument(
        "data", metavar="DATA", help="table with labels; - is standard input"
    )
    compare.add_argument(
        "--estimators",
        metavar="NAME,...",
        type=lambda text: text.split(","),
        help="what to compare: estimators of maxent fit, and of scikit-learn "
        f"{', '.join(BASELINES)} (default: those that the table suits)",
    )
    compare.add_argument(
        "-v",
        "--cv",
        type=_whole(2),
        default=5,
        metavar="K",
        help="folds, the same for all (default: %(default)s)",
    )
    compare.add_argument(
        "--scoring",
        choices=list(SCORINGS),
        help="what is compared (default: accuracy of classes, rmse of numbers)",
    )
    compare.add_argument(
        "--seed", type=int, default=0, help="of folds and random starts (default: 0)"
    )
    _add_columns(compare)
    compare.add_argument("--json", action="store_true", help="print one JSON object")
    _add_quiet(compare, "print nothing")
    _add_file_options(compare)
    compare.set_defaults(model=None, progress=False, probability=False)


def _add_values(predict: argparse.ArgumentParser) -> None:
    """Add options that write columns beside the predictions."""
    predict.add_argument(
        "--decision", action="store_true", help="add decision values to the predictions"
    )
    predict.add_argument(
        "--proba",
        "--probability",
        action="store_true",
        dest="probability",
        help="add probabilities",
    )
    predict.add_argument(
        "--score", action="store_true", help="add log-likelihoods of rows"
    )
    predict.add_argument(
        "--explain",
        action="store_true",
        help="of detectors and Gaussian mixtures: add the three columns that lower the "
        "score of a row most, each with its share of the score, in nats",
    )
    predict.add_argument(
        "--top",
        type=_whole(1),
        metavar="N",
        help="write the N rows of lowest scores only, the lowest first, with their "
        "numbers counted from 1; of a detector these are the outliers",
    )
    _add_positive(predict)


def _add_positive(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--positive",
        metavar="LABEL",
        help="label of the anomalies, by which a detector is judged (default: 1 of 0 "
        "and 1, -1 of -1 and 1, or a word such as anomaly or outlier); of a classifier "
        "in evaluate the class that ROC is about (default: the last)",
    )


def _whole(least: int) -> Callable[[str], int]:
    """Type of a whole number that is not less than another."""

    def parse(text: str) -> int:
        if not (text.isdecimal() and int(text) >= least):
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number >= {least}")
        return int(text)

    return parse


def _encoding(text: str) -> str:
    try:
        "a".encode(text)
    except (LookupError, ValueError):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not known; use a name such as utf-8, latin-1 or utf-16"
        ) from None
    return text


def _add_file_options(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--label",
        metavar="NAME|INDEX",
        help="label column of a CSV file, by name or number counted from 0, negative "
        "from the end (default: the last)",
    )
    _add_list(
        command,
        "--id",
        "columns of a CSV file that name the rows: they are no features, and stand "
        "before the predictions (default in predict: those that fit was told)",
    )
    command.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        help="whether the first row of a CSV file holds names (default: detected)",
    )
    command.add_argument(
        "--encoding",
        type=_encoding,
        default="utf-8",
        help="of CSV files and sequences, such as latin-1 (default: %(default)s)",
    )
    command.add_argument(
        "--decimal",
        choices=[".", ","],
        default=".",
        help="what separates decimals in a CSV file (default: the point)",
    )
    command.add_argument(
        "--negative",
        metavar="FILE",
        help="of sequences: the file with those of the other class, such as the "
        "background of a motif; all of DATA are positive, whatever the headers say",
    )
    command.add_argument(
        "--keep-case",
        action="store_true",
        help="tell lower-case letters of DNA and RNA from upper-case ones (default: "
        "read alike, as lower case marks repeats)",
    )
    command.add_argument(
        "--format",
        choices=["auto", "svmlight", "csv", "sequences"],
        default="auto",
        help="format of the data file (default: detected; sequences by an ending such "
        "as .fasta, .fa or .seq): svmlight; rows of cells between commas, tabs, "
        "semicolons or blanks; FASTA or FASTQ with the label as the last word of each "
        "header, or lines of a sequence and its label",
    )
