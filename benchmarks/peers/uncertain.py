"""Uncertain labels and hidden variables: their fits beside plain ones.

splice     as labels, on 500 true and 500 false splice sites as 100 bits, of which 50 of
           each class have a label, ten draws: full steps to convergence, and ten
           rounds of step 0.1 as the paper has them (needs --data).
labels     MEDPartialLabelClassifier on 1000 rows with an RBF kernel, nine rows in ten
           without a label, beside one MEDClassifier fit to the same rows with all
           their labels: how many such fits it takes.
overlap    both methods where two Gaussian classes overlap less and more: objective and
           right labels of the rows without one, of ten rows nine.
detector   MEDSequenceOutlierDetector with a categorical hidden Markov model of five
           states on 1000 sequences of 50 letters: seconds.
"""

import argparse
import time
import warnings

import numpy as np
from _race import Report, arguments, describe, pin, race


def main():
    """Run the parts asked for."""
    parser = arguments(argparse.ArgumentParser(description=__doc__.splitlines()[0]))
    parts = ["splice", "labels", "overlap", "detector"]
    parser.add_argument("--parts", nargs="*", default=parts, choices=parts)
    parser.add_argument("--data", help="folder with human_sites.csv.gz, for splice")
    options = parser.parse_args()
    if options.data is None:
        options.parts = [part for part in options.parts if part != "splice"]
    pin(1)
    warnings.filterwarnings("ignore")
    describe("Uncertain labels and hidden variables", [f"{options.pairs} pairs"])
    for part in options.parts:
        report = Report(options.csv)
        {"splice": splice, "labels": labels, "overlap": overlap, "detector": detector}[
            part
        ](options, report)
        report.table()


def sets():
    """(name, X, y, C) of made and bundled data; settings are not chosen."""
    from sklearn.datasets import load_digits, make_classification, make_moons
    from sklearn.preprocessing import StandardScaler

    from maxent.datasets import load_breast_cancer_wisconsin

    for seed in range(4):
        X, y = make_classification(
            1000, 20, n_informative=10, flip_y=0.05, random_state=seed
        )
        yield f"20 columns, draw {seed}", X, y, 1.0
        if seed == 0:
            yield f"20 columns, draw {seed}", X, y, 0.1
            yield f"20 columns, draw {seed}", X, y, 10.0
    yield "two moons", *make_moons(1000, noise=0.2, random_state=0), 1.0
    digits = load_digits()
    keep = np.random.default_rng(0).permutation(len(digits.target))[:1000]
    yield "digits, even or odd", digits.data[keep] / 16, digits.target[keep] % 2, 1.0
    X, y = load_breast_cancer_wisconsin(return_X_y=True)
    yield "breast cancer, 683 rows", StandardScaler().fit_transform(X), y == y[0], 1.0


def labels(options, report):
    """Plain fits a fit with nine rows in ten without a label takes, by set."""
    from maxent import MEDClassifier, MEDPartialLabelClassifier

    for name, X, y, C in sets():
        y = np.asarray(y, dtype=int)
        part = y.copy()
        hidden = np.random.default_rng(1).permutation(len(y))[: 9 * len(y) // 10]
        part[hidden] = -1
        calls = {}
        for method in ("alternating", "direct"):
            machine = MEDClassifier(C=C, n_jobs=1)
            model = MEDPartialLabelClassifier(machine, method=method)
            outcome = race(
                lambda model=model, X=X, part=part: model.fit(X, part),
                lambda machine=machine, X=X, y=y: machine.fit(X, y),
                options.pairs,
            )
            assert model.converged_
            calls[method] = outcome, model.n_iter_
        first, rounds = calls["alternating"]
        direct, iterations = calls["direct"]
        report.add(
            {
                "set": f"{name}, C = {C:g}",
                "rounds / iterations": f"{rounds} / {iterations}",
                "direct, ratio": f"{direct.columns['ratio']}",
                **first.columns,
            }
        )


def splice(options, report):
    """Plain fits that the experiment of the paper takes, by draw."""
    import csv
    import gzip
    from pathlib import Path

    from maxent import MEDClassifier, MEDPartialLabelClassifier

    path = Path(options.data) / "human_sites.csv.gz"
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        rows = [row for row in csv.DictReader(stream) if row["site"] == "donor"]
    found = np.array([list(row["sequence"][58:83]) for row in rows])
    codes = np.searchsorted(list("ACGT"), found)
    true = np.array([row["label"] == "1" for row in rows])
    for draw in range(2 if options.quick else 10):
        rng = np.random.default_rng([0, draw])
        both = [rng.permutation(np.flatnonzero(true == side))[:500] for side in (1, 0)]
        train = np.concatenate(both)
        X, y = np.eye(4)[codes[train]].reshape(1000, -1), true[train].astype(int)
        part = np.where(np.arange(1000) % 500 < 50, y, -1)
        cells = {"draw": f"{draw}"}
        for name, given in (
            ("full steps", {}),
            ("step 0.1, ten rounds", {"step": 0.1, "max_rounds": 10}),
            ("direct", {"method": "direct"}),
        ):
            machine = MEDClassifier(n_jobs=1)
            model = MEDPartialLabelClassifier(machine, **given)
            outcome = race(
                lambda model=model, X=X, part=part: model.fit(X, part),
                lambda machine=machine, X=X, y=y: machine.fit(X, y),
                options.pairs,
            )
            cells[f"{name}: rounds"] = f"{model.n_iter_}"
            cells[f"{name}: ratio"] = outcome.columns["ratio"]
            cells[f"{name}: s"] = outcome.columns["ours s"]
        report.add(cells)


def overlap(options, report):
    """Objective and accuracy of the methods by distance of the classes."""
    from maxent import MEDClassifier, MEDPartialLabelClassifier

    for distance in (2.0, 1.2, 0.6):
        for bias in ("flat", 1.0):
            rng = np.random.default_rng(0)
            X, y = rng.normal(size=(1000, 20)), np.arange(1000) % 2
            X[:, :4] += 0.5 * distance * (2 * y[:, None] - 1)
            part = y.copy()
            hidden = rng.permutation(1000)[:900]
            part[hidden] = -1
            machine = MEDClassifier(bias=bias, n_jobs=1)
            alone = machine.fit(np.delete(X, hidden, 0), np.delete(y, hidden))
            right = [f"{100 * alone.score(X[hidden], y[hidden]):.1f}"]
            for method in ("alternating", "direct"):
                model = MEDPartialLabelClassifier(machine, method=method).fit(X, part)
                share = 100 * np.mean(model.transduction_[hidden] == y[hidden])
                right.append(f"D = {model.objective_:.1f}: {share:.1f}")
            larger = np.bincount(model.transduction_[hidden], minlength=2).max() / 9.0
            report.add(
                {
                    "distance": f"{distance:g}",
                    "bias": "flat" if bias == "flat" else "prior",
                    "labelled rows alone": right[0],
                    "alternating": right[1],
                    "direct": right[2],
                    "rows in the larger class": f"{larger:.0f}",
                }
            )


def detector(options, report):
    """Seconds of a fit with hidden states."""
    from maxent import MEDSequenceOutlierDetector

    rng = np.random.default_rng(0)
    n, length = (100, 50) if options.quick else (1000, 50)
    letters = rng.integers(4, size=(n, length))
    letters[:, 1:] = np.where(  # half of the letters repeat the one before
        rng.random((n, length - 1)) < 0.5, letters[:, :-1], letters[:, 1:]
    )
    text = ["".join("ACGT"[k] for k in row) for row in letters]
    for starts in (1, 3):
        estimator = MEDSequenceOutlierDetector(
            5, alphabet="ACGT", n_init=starts, random_state=0, n_jobs=1
        )
        start = time.process_time()
        estimator.fit(text)
        report.add(
            {
                "fit": f"{n} sequences of {length} letters, 5 states, {starts} starts",
                "cpu s": f"{time.process_time() - start:.3g}",
                "rounds": f"{estimator.n_iter_}",
                "converged": f"{estimator.converged_}",
            }
        )


if __name__ == "__main__":
    main()
