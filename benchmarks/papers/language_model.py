"""Perplexity of trigrams with topics: section 8 of the latent maximum entropy paper.

Wang, Schuurmans & Zhao (2012): Wall Street Journal 1987-89, 42 million words,
vocabulary 60 000, 200 topics of which 5 a document; 20 starts of 5 E steps with 20
steps of iterative scaling each. Printed perplexities on 257 thousand words:
interpolated trigram 132, MAP 110, RLME 106.

Corpora: Brown (``brown.csv.gz``, 500 documents of 2000 words), every tenth document of
each category to test; and Reuters-21578 (``reuters21578.csv.gz``), stories of 30 words
or more of the ModApte split. One vocabulary for all models: the words of the training
part by frequency, all others "<unk>", which counts, as do ends of sentences. Trigrams
seen less than `--min-count` times are left out of both trigram models. `--documents`
takes as many of the training documents, evenly.

Rows: the model by L-BFGS on the penalised likelihood; and the paper's control, EM-IS
as printed: one run from zero, one from a perturbed start, and of `--starts` perturbed
ones the choice by penalised likelihood (MAP) and by regularised entropy (RLME).
The iterations, steps and starts are arguments; `--minutes` ends each fit by a
callback after so much time of the clock and keeps what it has reached.
"""

import csv
import gzip
import re
import resource
import time
import warnings

import numpy as np
from _language import InterpolatedTrigram, TopicUnigram
from _results import column, mean_and_error, parser, run, table
from fetch import found

TOKEN = re.compile(r"\d[\d.,/]*|[a-z]+(?:'[a-z]+)?|[.?!](?=\s|$)")
TRIGRAM, TOPICS = "interpolated trigram", "trigrams and topics"
PRINTED = {
    TRIGRAM: "132",
    "EM-IS, MAP of all starts": "110",
    "EM-IS, RLME of all starts": "106",
}


def arguments():
    """Parsed options."""
    out = parser(__doc__, 1, "brown.csv.gz or reuters21578.csv.gz")
    out.add_argument("--corpus", default="brown", choices=sorted(CORPORA))
    out.add_argument("--documents", type=int, default=90, help="to train")
    out.add_argument("--test", type=int, default=20, help="documents to test")
    out.add_argument("--vocabulary", type=int, default=2000)
    out.add_argument("--topics", type=int, default=10)
    out.add_argument("--per-document", type=int, default=5)
    out.add_argument("--min-count", type=int, default=2)
    out.add_argument("--iterations", type=int, default=60, help="of L-BFGS")
    out.add_argument("--starts", type=int, default=4, help="of EM-IS; 0: no control")
    out.add_argument("--e-steps", type=int, default=5)
    out.add_argument("--inner", type=int, default=20, help="steps of an M step")
    out.add_argument("--variance", type=float, default=1.0)
    out.add_argument("--fold-in", type=int, default=500)
    out.add_argument("--minutes", type=float, default=np.inf, help="for each fit")
    return out.parse_args()


def rows_of(folder, name):
    """Rows of a table, as dicts."""
    csv.field_size_limit(2**27)
    with gzip.open(found(folder, name), "rt", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def brown(folder):
    """(training documents, test documents), lists of words."""
    seen, train, test = {}, [], []
    for row in rows_of(folder, "brown.csv.gz"):
        k = seen[row["category"]] = seen.get(row["category"], 0) + 1
        (test if k % 10 == 0 else train).append(row["text"].lower().split())
    return train, test


def reuters(folder):
    """Stories as words, "<num>" and "</s>"."""
    parts = {"TRAIN": [], "TEST": []}
    for row in rows_of(folder, "reuters21578.csv.gz"):
        if row["topics_attr"] != "YES" or row["lewissplit"] not in parts:
            continue
        tokens = TOKEN.findall(row["body"].lower())
        words = [
            "<num>" if w[0].isdigit() else "</s>" if w in ".?!" else w for w in tokens
        ]
        if len(words) >= 30:
            parts[row["lewissplit"]].append(words)
    return parts["TRAIN"], parts["TEST"]


CORPORA = {"brown": brown, "reuters": reuters}


def evenly(items, n):
    """n of the items, equally spaced."""
    n = min(n, len(items))
    return [items[i] for i in np.linspace(0, len(items) - 1, n).astype(int)]


class TimeLimit:
    """Callback that ends a fit after some minutes of the clock."""

    def __init__(self, minutes):
        self.end = time.perf_counter() + 60.0 * minutes

    def setup(self, estimator, context):
        """Nothing to prepare."""

    def teardown(self, estimator, context):
        """Nothing to give back."""

    def on_fit_task_begin(self, estimator, context):
        """Nothing to note."""

    def on_fit_task_end(self, estimator, context):
        """Whether the time is over."""
        return time.perf_counter() > self.end


def fitted(train, options, **more):
    """Model fitted to the training part; seconds of the clock and of the processor."""
    from maxent.latent import TrigramTopicModel

    model = TrigramTopicModel(
        options.topics,
        options.per_document,
        vocabulary_size=options.vocabulary,
        min_count=options.min_count,
        prior_variance=options.variance,
        random_state=options.seed,
        **more,
    )
    if np.isfinite(options.minutes):
        model.set_callbacks(TimeLimit(options.minutes))
    start = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the bound on the iterations is on purpose
        model.fit(train)
    return model, (time.perf_counter() - start[0], time.process_time() - start[1])


def fits(options):
    """{unit: (options of the fit, {row: choice or None})}."""
    n = options.iterations
    scaling = {"method": "gis", "max_iter": options.e_steps, "inner": options.inner}
    out = {TOPICS: ({"max_iter": n}, {f"trigrams and topics, L-BFGS ({n})": None})}
    if options.starts:
        name = "EM-IS from zero"
        out[name] = {"init": "zero", **scaling}, {name: None}
        scaling["init"] = "random"
        name = "EM-IS from one perturbed start"
        out[name] = scaling, {name: None}
        choices = {"EM-IS, MAP of all starts": "likelihood"}
        choices |= {"EM-IS, RLME of all starts": None}
        out["EM-IS of all starts"] = {"n_init": options.starts, **scaling}, choices
    return out


def main():
    """Fit, score, write the table."""
    options = arguments()
    train, test = CORPORA[options.corpus](options.data)
    train, test = evenly(train, options.documents), evenly(test, options.test)
    every, name = fits(options), f"language_model_{options.corpus}_{len(train)}"

    def work(fit):
        more, choices = every[fit]
        model, spent = fitted(train, options, **more)
        rows = []
        for row, choice in choices.items():
            own = model if choice is None else model.select(choice)
            scores = [own.log_prob(d, options.fold_in) for d in test]
            rows += rows_by_document(row, scores, fit_columns(own, spent))
        if fit == TOPICS:  # the others have its vocabulary
            rows = baselines(train, test, model.vocabulary_, options) + rows
        return rows

    rows = run(name, options, [{"fit": each} for each in every], work)
    base = column(rows, "log_prob", model=TRIGRAM)
    lines = [line(rows, m, base) for m in dict.fromkeys(r["model"] for r in rows)]
    head = ["model", "perplexity", "gain, nats a word", "printed (WSJ)", *FIT]
    table(name, options, head, lines)


def rows_by_document(model, scores, columns):
    """A row for each test document: words that count, and their log-probability."""
    return [
        {"model": model, "document": k, "words": len(s), "log_prob": s.sum(), **columns}
        for k, s in enumerate(scores)
    ]


def baselines(train, test, vocabulary, options):
    """Rows of the interpolated trigram and of PLSA."""
    codes = [
        [np.array([vocabulary.get(word, 0) for word in d]) for d in part]
        for part in (train, test)
    ]
    n_words = len(vocabulary)
    trigram = InterpolatedTrigram(codes[0], n_words, options.min_count)
    topics = TopicUnigram(codes[0], n_words, options.topics, options.seed)
    scores = {
        TRIGRAM: [trigram.log_prob(d) for d in codes[1]],
        "PLSA with the unigram": [
            topics.log_prob(d, options.fold_in) for d in codes[1]
        ],
    }
    return [r for name, own in scores.items() for r in rows_by_document(name, own, {})]


FIT = {
    "penalised L": ".4f",
    "H - U": ".4f",
    "gradient": ".1e",
    "iterations": ".0f",
    "seconds": ".0f",
    "processor, s": ".0f",
    "peak memory, GB": ".1f",
    "vocabulary": ".0f",
    "bigrams": ".0f",
    "trigrams": ".0f",
}


def fit_columns(model, spent):
    """Columns about a fit."""
    entropy = model.candidates_["regularized_entropy"][model.selected_]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    sizes = map(len, (model.vocabulary_, model.bigrams_, model.trigrams_))
    fit = model.objective_, entropy, model.residual_, model.n_iter_
    return dict(zip(FIT, (*fit, *spent, memory, *sizes), strict=True))


def line(rows, model, base):
    """Cells of a model: gain over the trigram with its error over documents."""
    words, own = (column(rows, k, model=model) for k in ("words", "log_prob"))
    gain = (own - base) / words.mean()
    gain = "" if model == TRIGRAM else mean_and_error(gain, 3)
    info = {k: column(rows, k, model=model)[0] for k in FIT}
    return [
        *(model, f"{np.exp(-own.sum() / words.sum()):.1f}", gain),
        PRINTED.get(model, ""),
        *(
            f"{info[k]:{form}}" if np.isfinite(info[k]) else ""
            for k, form in FIT.items()
        ),
    ]


if __name__ == "__main__":
    main()
