"""``maxent fit`` on a table: train, write a model file."""

import numpy as np

from maxent._commands import reading
from maxent._commands.bins import Bins
from maxent._commands.catalog import CATEGORICAL_MODELS, MIXTURE, TABLES
from maxent._commands.columns import Columns, names_of
from maxent._commands.feature_scales import Scales
from maxent._commands.hints import (
    check_text,
    hint_at_counters,
    hint_at_spreads,
    tell_similar_labels,
)
from maxent._commands.outcome import (
    CommandError,
    check_model_output,
    listed,
)
from maxent._commands.parameters import parameters
from maxent._commands.reports import Shown
from maxent._commands.tables.column_choice import split_names
from maxent._commands.tables.mixed_columns import is_text_column
from maxent._commands.training import (
    as_taken,
    calibrated,
    complete,
    cross_validate,
    make_estimator,
    takes_sparse,
)
from maxent._commands.wording import column_words, in_shell

_OF_THE_WHOLE = {"method", "step", "class_prior", "max_rounds", "tol"}  # of partial


def fit(args):
    """Train on a data file, write a model file."""
    if args.model is None and args.cv is None:
        raise CommandError(
            "name the MODEL file to write, or say --cv K to estimate the error only"
        )
    if reading.holds_sequences(args):
        from maxent._commands import sequences

        return sequences.fit(args)
    reading.refuse_sequence_options(args)
    spec = _spec(args)
    estimator = made(args, spec)
    if args.model is not None:
        check_model_output(args.model, args.data)
    table, y, absent = read(args, spec)
    _set_class_weight(args, estimator, y)
    names, lines = table.feature_names, _size_lines(args, table, absent)
    weights = None
    if "weights" in table.beside:
        weights = np.array(table.beside["weights"][0].cells)
    prepared = Prepared(args, spec, estimator, table, weights)
    args.words = column_words(table, prepared.names)
    lines += prepared.lines(names)
    estimator, weights = calibrated(args, estimator, y, weights)
    if args.cv is not None:
        lines += _cross_validate(args, spec, estimator, prepared, y, weights)
    weighted = {} if weights is None else {"sample_weight": weights}
    predict = getattr(estimator, "predict", None) or estimator.score_samples
    return complete(
        *(args, estimator, y),
        fit=lambda: estimator.fit(prepared.X, y, **weighted),
        predict=lambda: predict(prepared.X),
        lines=lambda: lines,
        extra=lambda: _extra(args, table, prepared),
        names=prepared.names or names,
    )


def _size_lines(args, table, absent):
    """Lines about the size of the table, the rows left out, and a label not chosen."""
    lines = [("rows", table.X.shape[0])]
    lines += [(why, Shown(f"{n} rows, left out", n)) for why, n in absent.items() if n]
    lines.append(("features", table.X.shape[1]))
    if args.label is None and table.label_name:
        text = f"{table.label_name} (last column; --label chooses another)"
        lines.append(("label", Shown(text, table.label_name)))
    return lines


def _extra(args, table, prepared):
    """Facts that `predict` needs beside the estimator."""
    return {
        "feature_names": table.feature_names,
        "label": table.label_index if table.label_name is None else table.label_name,
        "zero_based": table.zero_based,
        "standardize": prepared.scales,
        "columns": prepared.columns,
        "class_weight": args.class_weight,
        "layout": _layout(table),
    }


def _layout(table):
    """Columns of the file that training left out, so that `predict` may, too."""
    if table.width is None:
        return None
    left_out = {*range(table.width)} - {*table.positions, table.label_index}
    return {
        "width": table.width,
        "left_out": sorted(left_out),
        "id": [column.place for column in table.beside.get("id", ())],
    }


# ------------------------------------------------------------------------ estimators


def _spec(args):
    if args.estimator not in TABLES:
        raise CommandError(
            f"--estimator {args.estimator} is for sequences, and {args.data} is read "
            "as a table; if it holds sequences, say --format sequences"
        )
    return TABLES[args.estimator]


def takes_categories(args, spec):
    """True if the estimator takes text and missing cells as they are."""
    if args.estimator == "partial":
        spec = TABLES[vars(args).get("machine", "classifier")]
    if args.estimator != "outliers":
        return spec.categories
    chosen = vars(args).get("outlier_model")
    if chosen == "mixture":
        chosen = args.given.get("set component", (None, None, None))[2]
    return chosen in CATEGORICAL_MODELS


def made(args, spec):
    given = {k: v for k, v in args.given.items() if k != "class_weight"}
    if args.estimator == "partial":
        return _partial(args, spec, given)
    if args.estimator == "outliers":
        return _detector(args, spec, given)
    if args.cv is not None and "random_state" not in parameters(spec):
        given.pop("seed", None)  # of the folds
    if "machine" in given:
        raise CommandError(f"--machine does not apply to the {args.estimator}")
    return make_estimator(args.estimator, spec, given)


def _detector(args, spec, given):
    """A detector; of a mixture, some options are of the mixture inside it."""
    model = given.get("outlier_model", (None, None, None))[2]
    own = parameters(spec)
    of_mixture = {
        dest: option
        for dest, option in given.items()
        if dest not in MIXTURE.foreign
        and {*option[1]} & parameters(MIXTURE).keys() - own.keys()
    }
    if model != "mixture":
        for flag, _, value in of_mixture.values():
            shown = "" if flag.startswith("--set") else f" {value}"
            raise CommandError(
                f"{flag}{shown} is of a mixture: say --outlier-model mixture, too"
            )
        return make_estimator("outliers", spec, given)
    rest = {k: v for k, v in given.items() if k not in {*of_mixture, "outlier_model"}}
    try:
        mixture = make_estimator("mixture inside outliers", MIXTURE, of_mixture)
    except ValueError as error:  # a value, unlike an estimator, checks what it is given
        raise CommandError(in_shell(error, args)) from None
    return make_estimator("outliers", spec, rest, model=mixture)


def _partial(args, spec, given):
    """A machine for labels that are partly missing, with the options of both."""
    inner = given.pop("machine", (None, None, "classifier"))[2]
    own = {k: v for k, v in given.items() if {*v[1]} & _OF_THE_WHOLE}
    rest = {k: v for k, v in given.items() if k not in own}
    machine = make_estimator(f"{inner} inside partial", TABLES[inner], rest)
    return make_estimator("partial", spec, own, estimator=machine)


def _set_class_weight(args, estimator, y):
    given = args.given.get("class_weight")
    if given is None:
        return
    target = getattr(estimator, "estimator", estimator)
    if y is None or "class_weight" not in target.get_params(deep=False):
        raise CommandError(f"{given[0]} does not apply to the {args.estimator}")
    labels = y[[label != -1 for label in y.tolist()]] if target is not estimator else y
    target.set_params(class_weight=reading.class_weights(given[2], labels))


# ------------------------------------------------------------------------------ data


def read(args, spec):
    """The table, its labels or None, and how many rows are left out, by the reason."""
    columns = "text"
    if takes_categories(args, spec):
        columns = "categories"
    elif args.impute:
        columns = "mixed"
    table = reading.read(
        args,
        label=args.label,
        labelled=_labelled(args, spec),
        columns=columns,
        text=args.text or None,
        ignore=args.ignore,
        beside=reading.beside(args),
    )
    table, absent = reading.without_row_index(args, table), {}
    hint_at_counters(args, table)
    if args.drop_unlabelled:
        table, absent["without a label"] = reading.labelled_rows(table, args.data)
    if args.weights is not None:
        table, absent["of weight 0"] = reading.weighted_rows(args, table)
    labels = {
        None: lambda: None,
        "numbers": lambda: reading.real_labels(table, args.data),
        "classes": lambda: reading.class_labels(table, args),
        "partly": lambda: reading.partial_labels(table.y),
    }
    y = labels[spec.labels]()
    if spec.labels in ("classes", "partly"):
        tell_similar_labels(y.tolist())
    return table, y, absent


def _labelled(args, spec):
    """True if all rows have labels, "partly" if some may, False if none do."""
    if args.drop_unlabelled and spec.labels not in ("classes", "numbers"):
        raise CommandError(f"--drop-unlabelled does not apply to the {args.estimator}")
    if args.drop_unlabelled or spec.labels == "partly":
        return "partly"
    # of a label that the estimator does not take only the column matters
    return True if spec.labels else args.label is not None and "partly"


class Prepared:
    """The rows as the estimator takes them, and what a model file keeps of the way."""

    def __init__(self, args, spec, estimator, table, weights):
        X = table.X if table.X.dtype == object else as_taken(estimator, table.X)
        categories = takes_categories(args, spec)
        for flag, wrong in (
            ("--standardize", args.standardize and categories),
            ("--bins", args.bins is not None and not categories),
        ):
            if wrong:
                raise CommandError(
                    f"{flag} does not apply to the {args.estimator}, which takes "
                    f"{'categories' if categories else 'numbers'}"
                )
        if categories and not isinstance(X, np.ndarray):
            X = X.toarray()
        if args.impute and not categories and isinstance(X, np.ndarray):
            X = X.astype(object)
        self.raw = self.X = X
        self.weights, self.steps = weights, []
        self.columns = self.scales = self.names = None
        self.text, self.missing = [], 0
        self.places = table.feature_names or table.positions
        places = [str(place) for place in self.places or ()]
        self.meant = [place in split_names(args.text, places) for place in places]
        if categories or X.dtype == object:
            cells = X.ravel().tolist()
            self.missing = sum(cell is None or cell != cell for cell in cells)
            self.text = [is_text_column(column) for column in X.T]
        self.texts = self._checked_texts()
        if categories:
            self._keep_categories(args, estimator)
        elif X.dtype == object:
            self._encode(args, spec, estimator, table.feature_names)
        if args.standardize:
            self.scales = self._apply("scale", Scales(args.data)).scales_
        else:
            hint_at_spreads(estimator, self.X)

    def _checked_texts(self):
        """Numbers of different texts by column, before they become columns."""
        found = {}
        for j in np.flatnonzero(self.text).tolist():
            cells = [cell for cell in self.raw[:, j].tolist() if cell is not None]
            check_text(self.places[j], cells, len(self.raw), self.meant[j])
            found[j] = len(set(cells))
        return found

    def _apply(self, name, step):
        self.X = step.fit(self.X, sample_weight=self.weights).transform(self.X)
        self.steps.append((name, step))
        return step

    def _keep_categories(self, args, estimator):
        self.columns = {"text": self.text}
        target = getattr(estimator, "estimator", None) or estimator
        if self.missing and target.missing is None:
            target.set_params(missing="category")
        if args.bins is not None:
            self.columns["bins"] = self._apply("bins", Bins(args.bins)).bins_

    def _encode(self, args, spec, estimator, names):
        # means of columns that are mostly zeros would fill them
        sparse = not args.standardize and takes_sparse(estimator)
        made = self._apply("encode", Columns(self.text, spec.drop, sparse))
        self.columns = made.state_
        if names is not None:
            self.names = names_of(self.columns, names)

    def lines(self, names):
        """Lines about weights, columns of text, bins and missing cells."""
        lines = []
        if self.weights is not None:
            total = float(self.weights.sum())
            lines.append(("sum of weights", Shown(f"{total:.6g}", total)))
        if self.texts:
            shown = {names[j] if names else j: n for j, n in self.texts.items()}
            text = listed(f"{name} ({found})" for name, found in shown.items())
            lines.append(("columns of text", Shown(text, shown)))
        lines += self._bin_lines()
        if self.missing:
            lines.append(("missing cells", self.missing))
        return lines

    def _bin_lines(self):
        bins = (self.columns or {}).get("bins")
        if bins is None:
            return []
        places = self.places or range(len(bins))
        shown = {k: len(b) + 1 for k, b in zip(places, bins) if b is not None}
        text = listed(f"{name} ({found})" for name, found in shown.items())
        return [("columns in bins", Shown(text or "none", shown))]


def _cross_validate(args, spec, estimator, prepared, y, weights):
    """Error in left-out rows; what is learnt of columns is learnt in every fold."""
    from sklearn.pipeline import Pipeline

    if spec.labels is None:
        raise CommandError(f"--cv needs labels, and {args.estimator} takes none")
    steps = [*prepared.steps, ("machine", estimator)]
    of_steps = [*(prepared.weights for _ in prepared.steps), weights]
    params = {
        f"{name}__sample_weight": own
        for (name, _), own in zip(steps, of_steps)
        if own is not None
    }
    return cross_validate(args, Pipeline(steps), prepared.raw, y, **params)
