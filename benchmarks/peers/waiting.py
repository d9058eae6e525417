"""What people wait for many times: files, small fits, many classes, one row, searches.

files    tables of 90,000 x 21 as the command line reads them, with all 17 digits and
         with four decimals, against pandas.read_csv; 300 MB of FASTA in lines of 60
         against a list of Biopython's SeqIO.parse
small    iris, wine, breast cancer, 208 x 60 and 1000 x 20 made rows, standardised:
         MEDClassifier against SVC, and with the logistic margin against SVC with
         probabilities, defaults on both sides; LinearSVC beside linear machines
classes  300 classes of 10 rows and 1000 of 5, 20 columns: fit and predict against SVC
one      predict of one row of iris and digits against SVC
softmax  MaxEntClassifier against LogisticRegression (L-BFGS), dense rows; where the
         tolerances mean different things, both end at the same excess or the peer above
search   MEDClassifierCV, and GridSearchCV of MEDClassifier, against GridSearchCV of
         SVC: ten values of C, ten of gamma, five splits of 2000 x 20 rows
"""

import argparse
import warnings
from functools import partial

from _race import Report, arguments, describe, pin, race

GROUPS = ("files", "small", "classes", "one", "softmax", "search")


def main():
    """Run the races asked for."""
    parser = arguments(argparse.ArgumentParser(description=__doc__.splitlines()[0]))
    parser.add_argument("--groups", nargs="*", default=GROUPS, choices=GROUPS)
    options = parser.parse_args()
    pin(1)
    warnings.simplefilter("ignore")
    describe("What is done many times", ["one thread, defaults unless said"])
    report = Report(options.csv)
    groups = {name: globals()[f"{name}_races"] for name in options.groups}
    for name, races in groups.items():
        for what, peer, ours, theirs, check in races(options):
            ours(), theirs()  # compiles and loads
            outcome = race(ours, theirs, options.pairs, seconds=60)
            row = {"group": name, "work": what, "peer": peer, **outcome.columns}
            result = check(outcome.ours.result, outcome.peer.result)
            report.add(row | {"ours, peer": result})
    report.table()


def files_races(options):
    """Whole files, which the system holds in memory after the first time."""
    import tempfile
    from pathlib import Path

    import numpy as np
    import pandas as pd
    from Bio import SeqIO

    from maxent._commands.tables.data_files import read_table
    from maxent._inputs.sequence_files import read_records

    rows, size = (9000, 3_000_000) if options.quick else (90_000, 300_000_000)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(rows, 20))).add_prefix("x")
    frame["y"] = rng.integers(2, size=rows)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.csv")
        for name, table in (("17 digits", frame), ("4 decimals", frame.round(4))):
            table.to_csv(path, index=False)
            work = f"CSV, {rows} x 21, {name}, {path.stat().st_size / 1e6:.0f} MB"
            calls = partial(read_table, path), partial(pd.read_csv, path)
            yield work, "pandas", *calls, same_table
        path = Path(folder, "sequences.fasta")
        write_fasta(path, size, rng)
        yield (
            *(f"FASTA, {path.stat().st_size / 1e6:.0f} MB", "SeqIO.parse"),
            *(partial(read_records, path), lambda: [*SeqIO.parse(path, "fasta")]),
            same_sequences,
        )


def write_fasta(path, size, rng):
    """Random sequences of 200 to 2000 bases in lines of 60, `size` bytes or more."""
    import numpy as np

    bases = np.frombuffer(b"ACGT", np.uint8)
    with open(path, "wb") as stream:
        while stream.tell() < size:
            text = bases[rng.integers(4, size=rng.integers(200, 2000))].tobytes()
            lines = [text[i : i + 60] for i in range(0, len(text), 60)]
            stream.write(b"\n".join([b">seq%d of size" % stream.tell(), *lines, b""]))


def same_table(ours, theirs):
    """Whether all features have the same bits."""
    import numpy as np

    found = theirs.iloc[:, :-1].to_numpy()
    return f"{np.mean(found == ours.X):.4f} alike"


def same_sequences(ours, theirs):
    """Share of sequences that are the same."""
    equal = [a == str(b.seq) for a, b in zip(ours.sequences, theirs, strict=True)]
    return f"{sum(equal) / len(equal):.4f} alike"


def small_races(options):
    """Fits of 150 to 1000 rows."""
    from sklearn.datasets import load_breast_cancer, load_iris, load_wine
    from sklearn.svm import SVC, LinearSVC

    from maxent import MEDClassifier

    tables = {
        "iris": load_iris(return_X_y=True),
        "wine": load_wine(return_X_y=True),
        "breast cancer": load_breast_cancer(return_X_y=True),
        "208 x 60": made(208, 60, random_state=0),
        "1000 x 20": made(1000, 20, flip_y=0.05, random_state=1),
    }
    kinds = {
        "RBF": (MEDClassifier(), "SVC", SVC()),
        "linear": (MEDClassifier("linear"), "SVC", SVC(kernel="linear")),
        "linear, again": (MEDClassifier("linear"), "LinearSVC", LinearSVC()),
        "logistic": (
            MEDClassifier(margin="logistic"),
            "SVC, probabilities",
            SVC(probability=True),
        ),
    }
    for table, (X, y) in tables.items():
        X = standardised(X)
        for kind, (ours, peer, theirs) in kinds.items():
            check = partial(accuracies, X, y)
            fits = partial(ours.fit, X, y), partial(theirs.fit, X, y)
            yield f"{table}, {kind}", peer, *fits, check


def classes_races(options):
    """Many classes of few rows."""
    from sklearn.datasets import make_blobs
    from sklearn.svm import SVC

    from maxent import MEDClassifier

    sizes = ((30, 10),) if options.quick else ((300, 10), (1000, 5))
    for m, rows in sizes:
        X, y = make_blobs(m * rows, 20, centers=m, cluster_std=4, random_state=0)
        ours, theirs = MEDClassifier(), SVC()
        fits = partial(ours.fit, X, y), partial(theirs.fit, X, y)
        yield f"{m} classes of {rows}, fit", "SVC", *fits, partial(accuracies, X, y)
        calls = partial(ours.predict, X), partial(theirs.predict, X)
        yield f"{m} classes of {rows}, predict", "SVC", *calls, alike


def one_races(options):
    """One row at a time."""
    from sklearn.datasets import load_digits, load_iris
    from sklearn.svm import SVC

    from maxent import MEDClassifier

    for table, load in (("iris", load_iris), ("digits", load_digits)):
        X, y = load(return_X_y=True)
        for kernel in ("rbf", "linear"):
            ours, theirs = MEDClassifier(kernel).fit(X, y), SVC(kernel=kernel).fit(X, y)
            calls = [
                lambda model=model, x=X[:1]: [model.predict(x) for _ in range(100)]
                for model in (ours, theirs)
            ]
            yield f"{table}, {kernel}, 100 calls", "SVC", *calls, alike


def softmax_races(options):
    """Conditional maximum entropy on dense rows."""
    from sklearn.datasets import load_breast_cancer, load_digits
    from sklearn.linear_model import LogisticRegression

    from maxent import MaxEntClassifier

    n = 2000 if options.quick else 50_000
    tables = {
        "digits": load_digits(return_X_y=True),
        "breast cancer": load_breast_cancer(return_X_y=True),
        f"{n} x 50 x 10": made(n, 50, n_informative=20, n_classes=10, random_state=0),
    }
    for table, (X, y) in tables.items():
        X = standardised(X)
        for tol, loose in ((1e-6, 1e-8), (1e-3, 1e-5)):
            ours = MaxEntClassifier(tol=tol)
            theirs = LogisticRegression(tol=loose, max_iter=3000)
            fits = partial(ours.fit, X, y), partial(theirs.fit, X, y)
            name = f"{table}, tol {tol:g} and {loose:g}"
            yield name, "L-BFGS", *fits, partial(losses, X, y)


def search_races(options):
    """Choosing C and gamma."""
    import numpy as np
    from sklearn.model_selection import GridSearchCV
    from sklearn.svm import SVC

    from maxent import MEDClassifier, MEDClassifierCV

    n = 300 if options.quick else 2000
    X, y = made(n, 20, n_clusters_per_class=4, flip_y=0.05, random_state=0)
    X = standardised(X)
    C, gamma = np.logspace(-2, 3, 10), np.logspace(-2, 2, 10) / 20
    grid = {"C": C, "gamma": gamma}
    peer = GridSearchCV(SVC(cache_size=500), grid, cv=5)
    for name, ours in (
        ("MEDClassifierCV", MEDClassifierCV(Cs=C, gammas=gamma, n_jobs=1)),
        ("GridSearchCV(MEDClassifier)", GridSearchCV(MEDClassifier(), grid, cv=5)),
    ):
        fits = partial(ours.fit, X, y), partial(peer.fit, X, y)
        yield name, "GridSearchCV(SVC)", *fits, best_scores


def made(rows, columns, n_informative=10, **options):
    """Rows and labels made by scikit-learn."""
    from sklearn.datasets import make_classification

    return make_classification(rows, columns, n_informative=n_informative, **options)


def standardised(X):
    """Columns of mean zero and deviation one."""
    from sklearn.preprocessing import StandardScaler

    return StandardScaler().fit_transform(X)


def accuracies(X, y, ours, theirs):
    """Training accuracies."""
    return f"{ours.score(X, y):.4f}, {theirs.score(X, y):.4f}"


def alike(ours, theirs):
    """Share of predictions that are the same."""
    import numpy as np

    return f"{np.mean(np.asarray(ours) == np.asarray(theirs)):.4f} alike"


def best_scores(ours, theirs):
    """Best mean scores of two searches."""
    return f"{ours.best_score_:.4f}, {theirs.best_score_:.4f}"


def losses(X, y, ours, theirs):
    """Penalised losses of two models of the same objective."""
    import numpy as np

    def loss(model):
        p = model.predict_log_proba(X)[
            np.arange(len(y)), np.searchsorted(model.classes_, y)
        ]
        # of two classes the one row of weights stands for both
        return -p.sum() + 0.5 * (model.coef_**2).sum()

    return f"{loss(ours):.6f}, {loss(theirs):.6f}"


if __name__ == "__main__":
    main()
