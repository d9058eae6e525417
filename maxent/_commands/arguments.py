"""Arguments of the commands, but what estimators take.  Imports nothing heavy."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from maxent._commands.catalog import BASELINES, SCORINGS, SEQUENCES, TABLES
from maxent._commands.options import add_options

__all__ = [
    "add_compare",
    "add_demo",
    "add_evaluate",
    "add_fit",
    "add_predict",
    "add_quiet",
]


def add_demo(demo: argparse.ArgumentParser) -> None:
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
    add_quiet(demo, "print no report")


def add_fit(fit: argparse.ArgumentParser) -> None:
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
    add_quiet(fit, "print no report and no progress")
    _add_file_options(fit)
    add_options(fit)


def add_predict(predict: argparse.ArgumentParser) -> None:
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
    add_quiet(predict, "say nothing of errors in labelled rows")
    _add_file_options(predict)


def add_evaluate(evaluate: argparse.ArgumentParser) -> None:
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
    add_quiet(evaluate, "print nothing: for --plot")
    _add_file_options(evaluate)
    evaluate.set_defaults(no_label=False)


def add_compare(compare: argparse.ArgumentParser) -> None:
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
    add_quiet(compare, "print nothing")
    _add_file_options(compare)
    compare.set_defaults(model=None, progress=False, probability=False)


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


def add_quiet(parser: argparse.ArgumentParser, text: str) -> None:
    parser.add_argument("-q", "--quiet", action="store_true", help=text)


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
