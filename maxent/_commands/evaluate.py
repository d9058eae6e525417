"""``maxent evaluate``: judge a model by the labels of a data file."""

import numpy as np

from maxent._commands import reading
from maxent._commands.anomalies import (
    detection_measures,
    is_detector,
    known_anomalies,
    refuse_options_of_detectors,
)
from maxent._commands.measures import (
    calibration_table,
    log_loss,
    mean_of,
    mean_roc_auc,
    regression_measures,
    roc_auc,
    share,
)
from maxent._commands.outcome import CommandError, Outcome, aligned, listed, quoted
from maxent._commands.pictures import check_picture, draw
from maxent._commands.predict import applied, load_model
from maxent._commands.predictions import answers, can_answer
from maxent._commands.reports import Shown, as_json, estimated, is_regressor, table
from maxent._commands.training import machine_of

__all__ = ["evaluate"]

_MOST_CLASSES = 12  # in a table of confusions
_ERRORS = (
    "± is one standard error over rows: DeLong's of ROC AUC, binomial of shares, by\n"
    "the delta method of RMSE and R2, of 200 bootstrap samples of average precision."
)


def evaluate(args):
    """Judge a model by the labels of a data file."""
    if args.plot is not None:
        check_picture("--plot", args.plot, args.data, args.model)
    estimator, extra = load_model(args.model)
    if extra["sequences"] is not None:
        from maxent._commands import sequences

        found = sequences.applied_to(args, estimator, extra["sequences"])
    else:
        reading.refuse_sequence_options(args)
        found = applied(args, estimator, extra)
    if found.y is None:
        remedy = "choose their column with --label"
        if extra["sequences"] is not None:
            remedy = "they are the last words of headers, or two files: --negative FILE"
        raise CommandError(
            f"{args.data}: no row has a label that the model knows, and evaluate "
            f"judges a model by labels; {remedy}, or use predict"
        )
    classes = hasattr(estimator, "classes_")
    of_detectors = ("top",) if classes else ("top", "positive")
    refuse_options_of_detectors(args, machine_of(estimator), *of_detectors)
    kept = np.array([label is not None for label in found.y.tolist()])
    y = np.array(found.y[kept].tolist())
    if is_detector(machine_of(estimator)):
        judged = _Detections(args, found, y, kept)
    elif is_regressor(estimator):
        judged = _Numbers(args, found, y, kept)
    elif classes:
        judged = _Classes(args, found, y, kept)
    else:
        raise CommandError(
            f"{args.model}: a {type(machine_of(estimator)).__name__} predicts neither "
            "classes, numbers nor outliers, so no labels can judge it; predict --score "
            "writes log-likelihoods"
        )
    left_out = int(np.sum(~kept))
    if left_out:
        judged.lines.insert(1, ("without a label", Shown(f"{left_out} rows", left_out)))
    if args.plot is not None:
        if not draw(args.plot, judged.paint, judged.size):
            raise CommandError(
                '--plot needs matplotlib; install it by pip install "maxent[plot]"'
            )
        judged.lines.append(("picture", args.plot))
    return Outcome(_report(args, judged), written=args.plot)


def _report(args, judged):
    if args.json:
        values = {_key(name): value for name, value in judged.lines}
        return as_json(values | judged.tables)
    if args.quiet:
        return ""
    return "\n".join([aligned(judged.lines), *judged.texts, f"{_ERRORS}\n"])


def _key(name):
    return name.strip().replace(" ", "_")


class _Judged:
    """Lines, tables and a picture about predictions of labelled rows.

    Attributes
    ----------
    lines : list of (str, text)
    tables : dict
        For JSON.
    texts : list of str
        Tables as text.
    size : tuple of float
        Of the picture, in inches.
    """

    def __init__(self):
        self.lines, self.tables, self.texts = [], {}, []

    def add(self, **estimates):
        """Add estimates; an underscore in a name is a blank."""
        for name, value in estimates.items():
            self.lines.append((name.replace("_", " "), estimated(value)))


# --------------------------------------------------------------------------- classes


class _Classes(_Judged):
    """A classifier."""

    def __init__(self, args, found, y, kept):
        super().__init__()
        classes = [str(c) for c in found.estimator.classes_.tolist()]
        labels = [str(label) for label in y.tolist()]
        known = np.isin(labels, classes)
        if not known.any():
            raise CommandError(
                f"{args.data}: no label is a class of the model, {listed(classes)}; "
                f"the labels are {listed(sorted({*labels}))}: choose their column with "
                "--label"
            )
        self.classes = classes
        self.codes = np.array([classes.index(x) for x in np.array(labels)[known]])
        self.rows = np.flatnonzero(kept)[known]
        self.positive = self._positive(args, found.estimator)
        self._compute(args, found, int(np.sum(~known)))

    def _positive(self, args, estimator):
        """Number of the class that ROC and calibration of two classes are about."""
        label = args.positive
        if label is None:
            label = getattr(machine_of(estimator), "pos_label_", self.classes[-1])
        if str(label) not in self.classes:
            raise CommandError(
                f"--positive {quoted(label)} is no class of the model, "
                f"{listed(self.classes)}"
            )
        return self.classes.index(str(label))

    def _compute(self, args, found, strange):
        asked = ["decision_function", "predict_proba"]
        methods = [m for m in asked if can_answer(found.estimator, m)]
        values = answers(args, found, ["predict", *methods])
        named = [str(label) for label in values["predict"].tolist()]
        predicted = np.array([self.classes.index(x) for x in named])[self.rows]
        codes, K = self.codes, len(self.classes)
        self.lines.append(("rows", len(codes)))
        if strange:
            text = f"{strange} rows with labels that the model does not know, left out"
            self.lines.append(("unknown labels", Shown(text, strange)))
        right = int(np.sum(predicted == codes))
        self.add(accuracy=share(right, len(codes)))
        largest = np.bincount(codes, minlength=K)
        text = f"{self.classes[largest.argmax()]} ({largest.max() / len(codes):.4g})"
        share_of = Shown(text, float(largest.max() / len(codes)))
        self.lines.append(("commonest label", share_of))
        self.proba = values.get("predict_proba")
        if self.proba is not None:
            self.proba = self.proba[self.rows]
        self.scores = values.get("decision_function", values.get("predict_proba"))
        self._add_areas(codes)
        self._add_confusion(predicted, codes)
        self._add_calibration(codes, predicted)

    def _add_areas(self, codes):
        if self.scores is None:
            return
        scores = self.scores[self.rows]
        if len(self.classes) > 2:
            self.scores = scores
            found = mean_roc_auc(codes, scores)
            if np.isfinite(found.value):
                self.add(**{"ROC_AUC,_mean_of_classes": found})
        else:
            score = scores if scores.ndim == 1 else scores[:, 1]
            self.scores = score if self.positive == 1 else -score
            self.add(ROC_AUC=roc_auc(codes == self.positive, self.scores))
            if not 0 < np.sum(codes == self.positive) < len(codes):
                self.lines.pop()  # of one class there is none
        if self.proba is not None:
            self.add(log_loss=log_loss(self.proba, codes))
            hits = np.eye(len(self.classes))[codes]
            squares = np.sum((self.proba - hits) ** 2, axis=1)
            half = 2 if len(self.classes) == 2 else 1  # as it is usual for two classes
            self.add(Brier_score=mean_of(squares / half))

    def _add_confusion(self, predicted, codes):
        K = len(self.classes)
        counts = np.zeros((K, K), dtype=int)
        np.add.at(counts, (codes, predicted), 1)
        self.counts = counts
        recall = [share(counts[k, k], counts[k].sum()) for k in range(K)]
        precision = [share(counts[k, k], counts[:, k].sum()) for k in range(K)]
        self.tables["confusion"] = {
            t: dict(zip(self.classes, row))
            for t, row in zip(self.classes, counts.tolist())
        }
        for name, values in (("recall", recall), ("precision", precision)):
            self.tables[name] = {
                c: estimated(e) for c, e in zip(self.classes, values) if e.counts[1]
            }
        if K > _MOST_CLASSES:
            self.texts.append(self._largest_confusions())
            return
        rows = [
            {
                "true \\ predicted": name,
                **{c: n for c, n in zip(self.classes, counts[k].tolist())},
                " recall": _short(recall[k]),
                " precision": _short(precision[k]),
            }
            for k, name in enumerate(self.classes)
        ]
        self.texts.append(table(rows))

    def _largest_confusions(self):
        off = self.counts - np.diag(self.counts.diagonal())
        order = np.argsort(-off, axis=None, kind="stable")[:_MOST_CLASSES]
        pairs = [divmod(int(k), len(off)) for k in order]
        rows = [
            {"true": self.classes[i], "predicted": self.classes[j], "rows": off[i, j]}
            for i, j in pairs
            if off[i, j]
        ]
        return table(rows) if rows else "no row is confused\n"

    def _add_calibration(self, codes, predicted):
        if self.proba is None:
            return
        if len(self.classes) == 2:
            proba = self.proba[:, self.positive]
            hit = codes == self.positive
            self.event = f"probability of {self.classes[self.positive]}"
        else:
            best = self.proba.argmax(axis=1)
            proba, hit = self.proba.max(axis=1), best == codes
            self.event = "largest probability"
        self.bins = calibration_table(proba, hit)
        gap = sum(b["rows"] * abs(b["mean"] - b["observed"].value) for b in self.bins)
        gap = float(gap / len(codes))
        self.lines.append(("calibration error", Shown(f"{gap:.4g}", gap)))
        self.tables["calibration"] = [
            {**b, "observed": estimated(b["observed"])} for b in self.bins
        ]
        rows = [
            {
                self.event: f"{b['from']:.1f} to {b['to']:.1f}",
                "rows": b["rows"],
                "mean": f"{b['mean']:.3f}",
                "observed": _short(b["observed"]),
            }
            for b in self.bins
        ]
        self.texts.append(table(rows))

    # -- picture
    @property
    def size(self):
        """Of the picture, in inches: a panel for each that there is."""
        return (4.4 * len(self._panels()), 4.2)

    def _panels(self):
        panels = [_paint_confusion] if len(self.classes) <= _MOST_CLASSES else []
        if self.scores is not None:
            panels.append(_paint_roc)
        return panels + ([_paint_calibration] if self.proba is not None else [])

    def paint(self, figure):
        """Draw the panels."""
        panels = self._panels()
        for ax, panel in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels):
            panel(ax, self)


def _short(estimate):
    return "-" if estimate.value != estimate.value else str(estimate).split(" (")[0]


def _paint_confusion(ax, judged):
    counts = judged.counts
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    ax.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    K, many = len(counts), len(counts) > 6
    for i in range(K):
        for j in range(K):
            ink = "white" if shares[i, j] > 0.5 else "black"
            size = "x-small" if many else "medium"
            ax.text(
                j, i, counts[i, j], ha="center", va="center", color=ink, fontsize=size
            )
    names = [c if len(c) <= 12 else f"{c[:11]}…" for c in judged.classes]
    turned = 90 if many or max(map(len, names)) * K > 30 else 0
    ax.set_xticks(range(K), names, rotation=turned)
    ax.set_yticks(range(K), names)
    ax.set(xlabel="predicted", ylabel="true", title="rows")


def _paint_roc(ax, judged):
    from maxent.displays._axes import GREY, colour, dashes
    from maxent.displays.roc import compare_scores

    ax.plot([0, 1], [0, 1], color=GREY, lw=0.8)
    scores, codes = judged.scores, judged.codes
    curves = [(judged.classes[judged.positive], codes == judged.positive, scores)]
    if scores.ndim == 2:
        each = zip(judged.classes, scores.T)
        curves = [(name, codes == k, own) for k, (name, own) in enumerate(each)]
    for k, (name, positive, own) in enumerate(curves[:6]):
        if 1 < positive.sum() < len(positive) - 1:
            (curve,), (area,), _ = compare_scores(positive, {"": own})
            label = f"{name[:16]} (AUC {area:.3f})"
            ax.plot(*curve, color=colour(k), ls=dashes(k), label=label)
    ax.set(xlabel="share of false positives", ylabel="share of true positives")
    ax.set(title="ROC", aspect="equal", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    ax.legend(loc="lower right", fontsize="small")


def _paint_calibration(ax, judged):
    from maxent.displays._axes import GREY, colour

    ax.plot([0, 1], [0, 1], color=GREY, lw=0.8)
    mean = [b["mean"] for b in judged.bins]
    seen = [b["observed"].value for b in judged.bins]
    error = [np.nan_to_num(b["observed"].error) for b in judged.bins]
    ax.errorbar(mean, seen, error, fmt="o-", color=colour(0), capsize=3)
    for b in judged.bins:
        middle = 0.5 * (b["from"] + b["to"])
        style = {"ha": "center", "fontsize": "x-small", "color": "0.4"}
        ax.text(middle, -0.04, b["rows"], va="top", rotation=90, **style)
    ax.set(xlabel=judged.event, ylabel="observed share", title="calibration")
    ax.set(aspect="equal", xlim=(-0.02, 1.02), ylim=(-0.25, 1.05))
    ax.set_yticks(np.linspace(0, 1, 6))


# --------------------------------------------------------------------------- numbers


class _Numbers(_Judged):
    """A regressor."""

    size = (8.8, 4.2)

    def __init__(self, args, found, y, kept):
        super().__init__()
        if y.dtype.kind not in "if":
            raise CommandError(
                f"{args.data}: the labels are text, such as {y[0]!r}, and the model "
                "predicts numbers; choose their column with --label"
            )
        self.y = y.astype(float)
        self.predicted = answers(args, found, ["predict"])["predict"][kept]
        self.lines.append(("rows", len(y)))
        for name, value in regression_measures(self.predicted, self.y).items():
            self.lines.append((name, estimated(value)))
        bias = mean_of(self.predicted - self.y)
        self.lines.append(("mean error", estimated(bias)))

    def paint(self, figure):
        """Draw predictions against labels, and the residuals."""
        from maxent.displays._axes import GREY, colour

        left, right = figure.subplots(1, 2)
        ends = [min(self.y.min(), self.predicted.min())]
        ends.append(max(self.y.max(), self.predicted.max()))
        left.plot(ends, ends, color=GREY, lw=0.8)
        left.plot(self.y, self.predicted, "o", ms=3, alpha=0.5, color=colour(0))
        left.set(xlabel="label", ylabel="prediction", title="predictions")
        right.hist(self.predicted - self.y, bins="auto", color=colour(0), alpha=0.7)
        right.axvline(0, color=GREY, lw=0.8)
        right.set(xlabel="prediction less label", ylabel="rows", title="errors")


# ------------------------------------------------------------------------- detectors


class _Detections(_Judged):
    """A detector, by labels of known anomalies."""

    size = (13.2, 4.2)

    def __init__(self, args, found, y, kept):
        super().__init__()
        truth, labelled = known_anomalies(args, found.y)
        if truth is None:
            raise CommandError(
                f"the labels of {args.data} are {listed(np.unique(y).tolist())}: say "
                "by --positive LABEL which of them are anomalies"
            )
        values = answers(args, found, ["predict", "score_samples"])
        self.truth, self.score = truth, values["score_samples"][labelled]
        self.threshold = getattr(machine_of(found.estimator), "offset_", None)
        flagged = values["predict"][labelled] == -1
        if args.top is not None:
            flagged = np.zeros(len(truth), dtype=bool)
            flagged[np.argsort(self.score, kind="stable")[: args.top]] = True
        self.lines.append(("rows", len(truth)))
        self.lines.append(("anomalies", int(truth.sum())))
        self.lines.append(("called so", int(flagged.sum())))
        for name, value in detection_measures(truth, flagged, -self.score).items():
            self.lines.append((name, estimated(value)))

    def paint(self, figure):
        """Draw scores by label, ROC, and precision against recall."""
        from sklearn.metrics import precision_recall_curve, roc_curve

        from maxent.displays._axes import GREY, colour

        first, second, third = figure.subplots(1, 3)
        low, high = np.quantile(self.score, [0.005, 1.0])
        bins = np.linspace(low, high, 40)
        for k, (name, own) in enumerate(
            {"normal": ~self.truth, "anomaly": self.truth}.items()
        ):
            shown = np.clip(self.score[own], low, high)
            first.hist(shown, bins, alpha=0.6, color=colour(k), label=name)
        if self.threshold is not None:
            first.axvline(self.threshold, color="0.1", lw=1, label="threshold")
        first.set_yscale("symlog", linthresh=1)
        first.set(xlabel="score", ylabel="rows", title="scores")
        first.legend(loc="upper left", fontsize="small")
        second.plot([0, 1], [0, 1], color=GREY, lw=0.8)
        if 0 < self.truth.sum() < len(self.truth):
            second.plot(*roc_curve(self.truth, -self.score)[:2], color=colour(0))
            precision, recall, _ = precision_recall_curve(self.truth, -self.score)
            third.step(recall, precision, where="post", color=colour(0))
            third.axhline(self.truth.mean(), color=GREY, lw=0.8)
        second.set(xlabel="share of false alarms", ylabel="recall", title="ROC")
        third.set(
            xlabel="recall",
            ylabel="precision",
            title="precision and recall",
            ylim=(0, 1.03),
        )
