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

import argparse
import csv
import gzip
import re
import resource
import time
import warnings
from pathlib import Path

import numpy as np
from _experiment import markdown, write_text
from _language import InterpolatedTrigram, TopicUnigram, perplexity

TOKEN = re.compile(r"\d[\d.,/]*|[a-z]+(?:'[a-z]+)?|[.?!](?=\s|$)")
PRINTED = {
    "interpolated trigram": "132",
    "EM-IS, MAP of all starts": "110",
    "EM-IS, RLME of all starts": "106",
}


def arguments():
    """Parsed options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="folder of the corpus")
    parser.add_argument("--corpus", default="brown", choices=sorted(CORPORA))
    parser.add_argument("--out", default="bench_results", help="folder for the results")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--documents", type=int, default=90, help="to train")
    parser.add_argument("--test", type=int, default=20, help="documents to test")
    parser.add_argument("--vocabulary", type=int, default=2000)
    parser.add_argument("--topics", type=int, default=10)
    parser.add_argument("--per-document", type=int, default=5)
    parser.add_argument("--min-count", type=int, default=2)
    parser.add_argument("--iterations", type=int, default=60, help="of L-BFGS")
    parser.add_argument("--starts", type=int, default=4, help="of EM-IS; 0: no control")
    parser.add_argument("--e-steps", type=int, default=5)
    parser.add_argument("--inner", type=int, default=20, help="steps of an M step")
    parser.add_argument("--variance", type=float, default=1.0)
    parser.add_argument("--fold-in", type=int, default=500)
    parser.add_argument("--minutes", type=float, default=np.inf, help="for each fit")
    return parser.parse_args()


def rows_of(folder, name):
    """Rows of a table, as dicts."""
    csv.field_size_limit(2**27)
    with gzip.open(Path(folder) / name, "rt", encoding="utf-8") as stream:
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
        found = TOKEN.findall(row["body"].lower())
        words = [
            "<num>" if w[0].isdigit() else "</s>" if w in ".?!" else w for w in found
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
        verbose=True,
        **more,
    )
    if np.isfinite(options.minutes):
        model.set_callbacks(TimeLimit(options.minutes))
    start = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the bound on the iterations is on purpose
        model.fit(train)
    return model, (time.perf_counter() - start[0], time.process_time() - start[1])


def models(train, options):
    """(name, model, seconds) of every row with topics and trigrams, one at a time."""
    n = options.iterations
    yield f"trigrams and topics, L-BFGS ({n})", *fitted(train, options, max_iter=n)
    scaling = {"method": "gis", "max_iter": options.e_steps, "inner": options.inner}
    if options.starts:
        yield "EM-IS from zero", *fitted(train, options, init="zero", **scaling)
        scaling["init"] = "random"
        yield "EM-IS from one perturbed start", *fitted(train, options, **scaling)
        pool, spent = fitted(train, options, n_init=options.starts, **scaling)
        yield "EM-IS, MAP of all starts", pool.select("likelihood"), spent
        yield "EM-IS, RLME of all starts", pool, spent


def main():
    """Fit, score, write the table."""
    options = arguments()
    train, test = CORPORA[options.corpus](options.data)
    train, test = evenly(train, options.documents), evenly(test, options.test)
    scores, fits = {}, {}
    for name, model, spent in models(train, options):
        if not fits:
            words = model.vocabulary_
            codes = [[numbers(d, words) for d in part] for part in (train, test)]
            scores |= baselines(codes, len(model.vocabulary_), options)
            size = len(model.vocabulary_), len(model.bigrams_), len(model.trigrams_)
        scores[name] = [model.log_prob(d, options.fold_in) for d in test]
        fits[name] = fit_row(model, spent)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"{name}: {perplexity(scores[name]):.2f}, {memory:.1f} GB", flush=True)
    words = [sum(map(len, part)) for part in (train, test)]
    write(scores, fits, options, size, words, len(train))


def numbers(document, vocabulary):
    """Numbers of the words, 0 of those that are not in the vocabulary."""
    return np.array([vocabulary.get(word, 0) for word in document])


def baselines(codes, n_words, options):
    """Scores of the interpolated trigram and of PLSA."""
    trigram = InterpolatedTrigram(codes[0], n_words, options.min_count)
    topics = TopicUnigram(codes[0], n_words, options.topics, options.seed)
    return {
        "interpolated trigram": [trigram.log_prob(d) for d in codes[1]],
        "PLSA with the unigram": [
            topics.log_prob(d, options.fold_in) for d in codes[1]
        ],
    }


def fit_row(model, spent):
    """Cells about a fit."""
    table, i = model.candidates_, model.selected_
    return [
        f"{model.objective_:.4f}",
        f"{table['regularized_entropy'][i]:.4f}",
        f"{model.residual_:.1e}",
        f"{model.n_iter_}",
        f"{spent[0]:.0f}",
        f"{spent[1]:.0f}",
    ]


def gain_cells(own, reference):
    """Mean gain in nats a word, and its standard error over documents."""
    words = sum(map(len, own)) / len(own)
    gain = np.array([np.sum(a - b) for a, b in zip(own, reference)]) / words
    error = gain.std(ddof=1) / np.sqrt(len(gain)) if len(gain) > 1 else np.nan
    return f"{gain.mean():+.3f} ± {error:.3f}"


def write(scores, fits, options, size, words, documents):
    """The table, and log-probabilities of every document."""
    rows = [
        [
            name,
            f"{perplexity(own):.1f}",
            gain_cells(own, scores["interpolated trigram"]),
            PRINTED.get(name, ""),
            *fits.get(name, [""] * 6),
        ]
        for name, own in scores.items()
    ]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    lines = [
        "# Language: trigrams with topics",
        "",
        f"{options.corpus}, {documents} documents of {words[0]} words to train, "
        f"{len(scores['interpolated trigram'])} of {words[1]} to test, vocabulary "
        f"{size[0]}, {options.topics} topics, {options.per_document} a document, "
        f"trigrams seen {options.min_count} times or more ({size[1]} bigrams, "
        f"{size[2]} trigrams), prior variance {options.variance:g}, seed "
        f"{options.seed}. EM-IS: {options.e_steps} E steps of {options.inner} steps, "
        f"{options.starts} starts. The gain is in nats a word over the interpolated "
        "trigram, with its standard error over documents.",
        "",
        *markdown(
            [
                "model",
                "perplexity",
                "gain",
                "printed (WSJ)",
                "penalised L",
                "H - U",
                "gradient",
                "iterations",
                "s",
                "s of processor",
            ],
            rows,
        ),
        "",
        f"Peak memory {memory:.1f} GB. The time of a choice is that of all starts.",
    ]
    out = Path(options.out)
    write_text(lines, out / f"language_model_{options.corpus}.md")
    path = out / f"language_model_{options.corpus}.csv"
    with open(path, "w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["model", "document", "words", "log_prob"])
        for name, parts in scores.items():
            for k, part in enumerate(parts):
                writer.writerow([name, k, len(part), part.sum()])


if __name__ == "__main__":
    main()
