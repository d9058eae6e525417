"""Exons against introns: figure 8 of the product-kernel paper.

500 exons and 500 introns, half to train; a hidden Markov model for each sequence with
the paper's number of states, kernels of power 1 and horizon T, normalised. Against
inner products of K-mer counts, and kernels between Markov chains.

The folder holds one of two stand-ins for the genes of HS3D, whose exons and introns are
not to be had whole: ``exon_intron.fasta.gz``, whole exons and introns of a nematode;
``hs3d_true_donors.csv.gz``, the 140 letters around the donor sites of HS3D, of which
the first half is exon and the second intron. Letters at the junctions are left out,
since they would give the class away. Sequences of one transcript (or GenBank entry)
are on one side of the split.
"""

import csv
import gzip
import warnings

import numpy as np
from _precomputed import chosen_error, compared, head_of
from _results import column, parser, run, table
from fetch import found

FILES = {"nematode": "exon_intron.fasta.gz", "human": "hs3d_true_donors.csv.gz"}
SIZE = 250  # sequences of each class on each side
TRIM = 6  # letters left out at both ends of whole sequences
EXON, INTRON = slice(3, 67), slice(76, 140)  # of windows with GT at 70 and 71
HORIZONS = (3, 5, 7, 9, 11)
SHOWN = (5, 7, 9)
KMERS = (1, 2, 3, 4, 5)
PENALTIES = (0.1, 1.0, 10.0, 100.0)
STEPS = 400
PAIR_STEPS = 40  # of the fits one by one
SHARE = 0.01  # of uniform tables in these
PRINTED = {
    "HMM, T = 9": "10 to 11 %",
    "3-mers": "7 to 8 %",
    "1-mers": "34 %",
    "2-mers": "18 %",
    "4-mers": "above 3-mers",
    "5-mers": "above 3-mers",
}
BASE = "3-mers"
CURVE = [f"least error at C = {C:g}" for C in PENALTIES]


def load(folder, which=None):
    """Exons and introns, each a list of (group, letters), and the name of the set."""
    names = FILES.values() if which is None else (FILES[which],)
    path = found(folder, *names)
    pairs = {"exon": [], "intron": []}
    if path.name == FILES["nematode"]:
        with gzip.open(path, "rt", encoding="ascii") as stream:
            for line in stream:
                if line.startswith(">"):
                    kind, group, _ = line[1:].split("|")
                else:
                    pairs[kind].append((group, line.strip()[TRIM:-TRIM]))
        return pairs["exon"], pairs["intron"], "nematode"
    with gzip.open(path, "rt", encoding="ascii") as stream:
        for row in csv.DictReader(stream):
            if not set(row["sequence"]) <= set("ACGT"):
                continue
            for kind, part in (("exon", EXON), ("intron", INTRON)):
                pairs[kind].append((row["genbank_entry"], row["sequence"][part]))
    return pairs["exon"], pairs["intron"], "human"


def sampled(exons, introns, rng):
    """1000 sequences, classes and training rows; groups are on one side."""
    groups = sorted({group for group, _ in exons + introns})
    first = {g for g in groups if rng.random() < 0.5}
    sequences, y, train = [], [], []
    for side in (True, False):
        for kind, pairs in enumerate((exons, introns)):
            letters = [s for g, s in pairs if (g in first) == side]
            picked = rng.choice(len(letters), SIZE, replace=False)
            sequences += [letters[i] for i in picked]
            y += [kind] * SIZE
            train += [side] * SIZE
    train = np.array(train)
    return sequences, np.array(y), np.flatnonzero(train), np.flatnonzero(~train)


def state_pairs(sequences, rng):
    """One hidden Markov model of order two for each sequence, with two states.

    It is a chain of the pairs (q[t-1], q[t]): a pair is followed by those that begin
    with its second state. EM keeps the zeros of the start. Letters depend on pairs.
    Afterwards a share of every table is made uniform, on the pairs that may follow.
    """
    from maxent.models import CategoricalHMM

    allowed = np.array(
        [[a[1] == b[0] for b in np.ndindex(2, 2)] for a in np.ndindex(2, 2)]
    )
    models = []
    for letters in sequences:
        transition = allowed * rng.dirichlet(np.ones(4), size=4)
        start = CategoricalHMM(
            rng.dirichlet(np.ones(4)),
            transition / transition.sum(axis=1, keepdims=True),
            rng.dirichlet(np.full(4, 5.0), size=4),
            alphabet="ACGT",
        )
        model = CategoricalHMM.fit(
            [letters], init=start, smoothing=0.0, max_iter=PAIR_STEPS
        )
        models.append(
            CategoricalHMM(
                (1 - SHARE) * model.start + SHARE / 4,
                (1 - SHARE) * model.transition + SHARE / 2 * allowed,
                (1 - SHARE) * model.emission.prob + SHARE / 4,
                alphabet="ACGT",
            )
        )
    return models


def kernels_of(sequences, rng):
    """{row: {setting: kernel matrix}}."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.preprocessing import normalize

    from maxent.kernels import product_kernel
    from maxent.models import CategoricalHMM, MarkovChain

    def by_horizon(models, rho):
        K = product_kernel(models, rho=rho, horizon=HORIZONS, normalize=True)
        return {T: np.ascontiguousarray(K[:, :, k]) for k, T in enumerate(HORIZONS)}

    options = {"alphabet": "ACGT", "max_iter": STEPS, "tol": 1e-6, "random_state": rng}
    hmm = by_horizon(CategoricalHMM.fit_many(sequences, **options), 1.0)
    rows = {f"HMM, T = {T}": {T: hmm[T]} for T in SHOWN}
    rows["HMM, T chosen"] = hmm
    rows["HMM of order 2, T chosen"] = by_horizon(state_pairs(sequences, rng), 1.0)
    for order in (1, 2):
        chains = MarkovChain.fit_many(sequences, order=order, alphabet="ACGT")
        rows[f"Markov chain of order {order}, T chosen"] = by_horizon(chains, 1.0)
    for K in KMERS:
        counter = CountVectorizer(analyzer="char", ngram_range=(K, K), lowercase=False)
        X = normalize(counter.fit_transform(sequences).astype(float))
        rows[f"{K}-mers"] = {K: (X @ X.T).toarray()}
    return rows


def one_draw(exons, introns, rng, number):
    """Rows of every kernel, with the least error over the horizons for each C."""
    sequences, y, train, test = sampled(exons, introns, rng)
    rows = []
    for name, kernels in kernels_of(sequences, rng).items():
        error, setting, C, grid = chosen_error(
            kernels, y, train, test, PENALTIES, number
        )
        row = {"row": name, "error": error, "best": grid.min(), "setting": setting}
        rows.append(row | {"C": C} | dict(zip(CURVE, grid.min(axis=0), strict=True)))
    return rows


def main():
    """Run the draws; write the table, its numbers and a figure."""
    from sklearn.exceptions import ConvergenceWarning

    out = parser(__doc__, 10, " or ".join(FILES.values()))
    sets = list(FILES)
    out.add_argument(
        "--set", choices=sets, help="of both (default: nematode if it is there)"
    )
    options = out.parse_args()
    exons, introns, title = load(options.data, options.set)
    name = f"exon_intron_{title}"

    def work(draw):
        rng = np.random.default_rng([options.seed, draw])
        with warnings.catch_warnings():
            # the steps do not always reach the tolerance
            warnings.simplefilter("ignore", ConvergenceWarning)
            return one_draw(exons, introns, rng, draw)

    rows = run(name, options, [{"draw": k} for k in range(options.draws)], work)
    kernels = dict.fromkeys(r["row"] for r in rows)
    head = ["kernel", "printed", *head_of(BASE)]
    lines = [[k, PRINTED.get(k, ""), *compared(rows, k, BASE)] for k in kernels]
    table(name, options, head, lines)
    draw(rows, kernels, title, f"{options.out}/{name}.png")


def draw(rows, kernels, title, path):
    """Test errors over C."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    ax = figure.subplots()
    for name in kernels:
        mean = [100 * column(rows, at, row=name).mean() for at in CURVE]
        style = "--" if name.endswith("mers") else "-"
        ax.semilogx(PENALTIES, mean, style, label=name)
    ax.set(title=title, xlabel="C", ylabel="test error, %")
    figure.legend(loc="outside right center", fontsize="small")
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
