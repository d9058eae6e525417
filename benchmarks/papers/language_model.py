"""Perplexity of trigrams with topics: section 8 of the latent maximum entropy paper.

Wang, Schuurmans & Zhao (2012): Wall Street Journal 1987-89, 42 million words,
vocabulary 60 000, 200 topics of which 5 a document; printed perplexities on 257
thousand words: interpolated trigram 132, MAP 110, RLME 106.

Protocol here: the Brown corpus (``brown.csv.gz``: document, category, text), every
tenth document of each category to test. One vocabulary for all models: the words of
the training part by frequency, all others "<unk>", which counts, as do ends of
sentences. Trigrams seen less than `--min-count` times are left out of both trigram
models. `--documents` takes as many of the training documents, evenly.

The paper's choice among 20 starts (MAP against RLME) is not repeated: the model is
fitted from one start, by L-BFGS on the penalised likelihood.
"""

import argparse
import csv
import gzip
import resource
import time
from pathlib import Path

import numpy as np
from _experiment import markdown, write_text
from _language import InterpolatedTrigram, TopicUnigram, perplexity

PRINTED = {"interpolated trigram": "132", "trigrams and topics": "110 (MAP), 106"}


def arguments():
    """Parsed options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="folder of brown.csv.gz")
    parser.add_argument("--out", default="bench_results", help="folder for the results")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--draws", type=int, default=1, help="starts of the topics")
    parser.add_argument("--documents", type=int, default=90, help="to train")
    parser.add_argument("--test", type=int, default=20, help="documents to test")
    parser.add_argument("--vocabulary", type=int, default=2000)
    parser.add_argument("--topics", type=int, default=10)
    parser.add_argument("--per-document", type=int, default=5)
    parser.add_argument("--min-count", type=int, default=2)
    parser.add_argument("--iterations", type=int, default=60)
    parser.add_argument("--variance", type=float, default=1.0)
    parser.add_argument("--fold-in", type=int, default=500)
    return parser.parse_args()


def load(folder):
    """(training documents, test documents), lists of words."""
    with gzip.open(Path(folder) / "brown.csv.gz", "rt", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    seen, train, test = {}, [], []
    for row in rows:
        k = seen[row["category"]] = seen.get(row["category"], 0) + 1
        (test if k % 10 == 0 else train).append(row["text"].lower().split())
    return train, test


def evenly(items, n):
    """n of the items, equally spaced."""
    n = min(n, len(items))
    return [items[i] for i in np.linspace(0, len(items) - 1, n).astype(int)]


def composite(train, test, options, seed):
    """Perplexity of the model on the test part; fitted model; seconds to fit."""
    import warnings

    from maxent.latent import TrigramTopicModel

    model = TrigramTopicModel(
        options.topics,
        options.per_document,
        vocabulary_size=options.vocabulary,
        min_count=options.min_count,
        prior_variance=options.variance,
        max_iter=options.iterations,
        random_state=seed,
        verbose=True,
    )
    start = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the bound on the iterations is on purpose
        model.fit(train)
    spent = time.perf_counter() - start[0], time.process_time() - start[1]
    scores = [model.log_prob(d, options.fold_in) for d in test]
    return model, scores, spent


def main():
    """Fit, score, write the table."""
    options = arguments()
    train, test = load(options.data)
    train, test = evenly(train, options.documents), evenly(test, options.test)
    rows, results = [], []
    for draw in range(options.draws):
        model, scores, spent = composite(train, test, options, options.seed + draw)
        codes = [[model._codes(d) for d in part] for part in (train, test)]
        V = len(model.vocabulary_)
        base = InterpolatedTrigram(codes[0], V, options.min_count)
        topics = TopicUnigram(codes[0], V, options.topics, options.seed + draw)
        results.append(
            {
                "interpolated trigram": [base.log_prob(d) for d in codes[1]],
                "PLSA with the unigram": [
                    topics.log_prob(d, options.fold_in) for d in codes[1]
                ],
                "trigrams and topics": scores,
            }
        )
    for name in results[0]:
        found = [perplexity(each[name]) for each in results]
        rows.append([name, f"{np.mean(found):.1f}", PRINTED.get(name, "")])
    n = [sum(map(len, part)) for part in (train, test)]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    out = Path(options.out)
    lines = [
        "# Language: trigrams with topics",
        "",
        f"Brown corpus, {len(train)} documents of {n[0]} words to train, {len(test)} "
        f"of {n[1]} to test, vocabulary {V}, {options.topics} topics, "
        f"{options.per_document} a document, trigrams seen {options.min_count} times "
        f"or more ({len(model._bigrams)} bigrams, {len(model._trigrams)} trigrams), "
        f"prior variance {options.variance:g}, {model.n_iter_} iterations (gradient "
        f"{model.residual_:.1e}), seed {options.seed}, {options.draws} draws.",
        "",
        *markdown(["model", "perplexity", "printed (WSJ)"], rows),
        "",
        f"Last fit: {spent[0]:.0f} s, {spent[1]:.0f} s of processor; peak memory "
        f"{memory:.1f} GB.",
    ]
    write_text(lines, out / "language_model.md")
    with open(out / "language_model.csv", "w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["draw", "model", "document", "words", "log_prob"])
        for draw, each in enumerate(results):
            for name, parts in each.items():
                for k, part in enumerate(parts):
                    writer.writerow([draw, name, k, len(part), part.sum()])


if __name__ == "__main__":
    main()
