"""Faculty against student pages: figure 7 of the product-kernel paper.

Pages of four universities and of others (WebKB). Each draw holds one of the four out in
turn and trains on 77 or 622 random pages of all the others; all faculty and student
pages of the one held out test. A page is the multinomial of its words, by maximum
likelihood; the words are those of the training pages, in lower case, no stemming.

The Bhattacharyya kernel (power 1/2, one draw) against the linear kernel and Gaussian
kernels of three widths on the proportions of the words, as in the paper, and other
kernels for counts. Scales of the exponentials without a printed one are the inverse
median over pairs of training pages.
"""

import csv
import gzip
import io

import numpy as np
from _precomputed import chosen_error, compared, head_of
from _results import column, parser, run, table
from fetch import found

UNIVERSITIES = ("cornell", "texas", "washington", "wisconsin")
SIZES = (77, 622)
LOG_PENALTIES = np.arange(9.0)
WIDTHS = {"1/4": 0.25, "1": 1.0, "4": 4.0}
BACKGROUND = 100.0  # words of the mean training page that smooth a page, for KL
BASE = "Bhattacharyya"


def load(folder):
    """Texts, whether each is of faculty, and universities."""
    csv.field_size_limit(1 << 24)
    path = found(folder, "webkb.csv.gz")
    with gzip.open(path, "rt", encoding="utf-8", newline="") as stream:
        rows = [
            row
            for row in csv.DictReader(io.StringIO(stream.read()))
            if row["category"] in ("faculty", "student") and int(row["n_words"])
        ]
    texts = [row["text"] for row in rows]
    faculty = np.array([row["category"] == "faculty" for row in rows])
    return texts, faculty, np.array([row["university"] for row in rows])


def proportions(X):
    """Rows that sum to one."""
    from sklearn.preprocessing import normalize

    return normalize(X, norm="l1")


def exponential(distance, n):
    """exp(-D / median of D over pairs of the n training rows)."""
    return np.exp(-distance / np.median(distance[:n][np.triu_indices(n, 1)]))


def symmetric_kl(X, n):
    """Symmetric divergences of smoothed proportions, all rows with training rows."""
    mean = proportions(X[:n]).mean(axis=0)
    P = X.toarray() + BACKGROUND * mean
    P /= P.sum(axis=1, keepdims=True)
    L = np.log(P)
    own = np.einsum("ij,ij->i", P, L)
    cross = P @ L[:n].T + L @ P[:n].T
    return np.maximum(own[:, None] + own[:n] - cross, 0.0)


def jensen_shannon(P, n):
    """Jensen-Shannon divergences in nats, all rows with training rows.

    Words of one page alone give a share that all pages have in common:
    JS = log 2 - sum over common words of [(p + q) log(p + q) - p log p - q log q] / 2.
    """
    columns = P[:n].tocsc()
    out = np.full((P.shape[0], n), np.log(2.0))
    for i in range(P.shape[0]):
        words = P.indices[P.indptr[i] : P.indptr[i + 1]]
        own = P.data[P.indptr[i] : P.indptr[i + 1]]
        part = columns[:, words]
        p, q = np.repeat(own, np.diff(part.indptr)), part.data
        gain = (p + q) * np.log(p + q) - p * np.log(p) - q * np.log(q)
        out[i] -= 0.5 * np.bincount(part.indices, gain, minlength=n)
    return np.maximum(out, 0.0)


def kernels_of(X, n):
    """{row: kernel matrix (all pages, n training pages)} of counts, CSR."""
    from sklearn.metrics.pairwise import euclidean_distances
    from sklearn.preprocessing import normalize

    from maxent.kernels import ProductKernel

    product = ProductKernel(estimate="ml")
    affinity = np.vstack([product.fit_transform(X[:n]), product.transform(X[n:])])
    P = proportions(X)

    def linear(rows):
        return (rows @ rows[:n].T).toarray()

    squares = euclidean_distances(P, P[:n], squared=True)
    pooled = np.asarray(X[:n].sum(axis=0)).ravel()
    whitened = P.multiply(1.0 / np.sqrt(pooled / pooled.sum())).tocsr()
    rows = {BASE: affinity, "linear": linear(P)}
    for name, width in WIDTHS.items():
        rows[f"Gaussian, σ = {name}"] = np.exp(-squares / (2 * width**2))
    rows["Fisher"] = linear(whitened) - 1.0
    rows["log(1 + counts)"] = linear(X.log1p())
    rows["log(1 + counts), cosine"] = linear(normalize(X.log1p()))
    rows["square roots of counts"] = linear(X.sqrt())
    angles = np.arccos(np.minimum(affinity, 1.0)) ** 2
    rows["heat"] = exponential(angles, n)
    rows["exponentiated KL"] = exponential(symmetric_kl(X, n), n)
    rows["Jensen-Shannon"] = exponential(jensen_shannon(P, n), n)
    return rows


def least_eigenvalue(K, n):
    """Least eigenvalue of the training block over its greatest."""
    values = np.linalg.eigvalsh((K[:n] + K[:n].T) / 2)
    return values[0] / values[-1]


def one_draw(counts, faculty, universities, number, rng):
    """Records of every row and size."""
    held_out = UNIVERSITIES[number % len(UNIVERSITIES)]
    test = np.flatnonzero(universities == held_out)
    pool = rng.permutation(np.flatnonzero(universities != held_out))
    records = []
    for size in SIZES:
        pages = np.concatenate([pool[:size], test])
        X = counts[pages]
        X = X[:, np.unique(X[:size].indices)]
        kept = np.diff(X.indptr) > 0  # pages without any training word are left out
        X, y = X[kept], faculty[pages[kept]]
        train, new = np.arange(size), np.arange(size, len(y))
        for name, K in kernels_of(X, size).items():
            error, _, C, grid = chosen_error(
                {name: K}, y, train, new, np.exp(LOG_PENALTIES), number
            )
            records.append(
                {
                    "held_out": held_out,
                    "size": size,
                    "row": name,
                    "error": error,
                    "best": grid.min(),
                    "log_C": round(np.log(C)),
                    "least_eigenvalue": least_eigenvalue(K, size),
                    **{f"error_{k:.0f}": e for k, e in enumerate(grid[0])},
                }
            )
    return records


def main():
    """Run the draws; write the table, its numbers and a figure."""
    from scipy.sparse import csr_array
    from sklearn.feature_extraction.text import CountVectorizer

    options = parser(__doc__, 20, "webkb.csv.gz").parse_args()
    texts, faculty, universities = load(options.data)
    counter = CountVectorizer(token_pattern="[a-z]+", dtype=np.float64)
    counts = csr_array(counter.fit_transform(texts))

    def work(draw):
        rng = np.random.default_rng([options.seed, draw])
        return one_draw(counts, faculty, universities, draw, rng)

    rows = run("webkb", options, [{"draw": k} for k in range(options.draws)], work)
    lines = []
    for name in dict.fromkeys(r["row"] for r in rows):
        cells = [c for n in SIZES for c in compared(rows, name, BASE, size=n)]
        eigen = column(rows, "least_eigenvalue", row=name).min()
        lines.append([name, *cells, f"{eigen:.1e}" if eigen < -1e-12 else ""])
    head = ["kernel", *(f"{n} pages: {text}" for n in SIZES for text in head_of(BASE))]
    head.append("least eigenvalue over the greatest, if negative")
    table("webkb", options, head, lines)
    draw(rows, f"{options.out}/webkb.png")


def draw(records, path):
    """Mean test errors over log C, as in the paper."""
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4), layout="constrained")
    axes = figure.subplots(1, len(SIZES), sharey=True)
    keys = [f"error_{k:.0f}" for k in LOG_PENALTIES]
    for ax, size in zip(axes, SIZES, strict=True):
        part = [r for r in records if r["size"] == size]
        names = dict.fromkeys(r["row"] for r in part)
        for color, name in zip(colormaps["tab20"].colors, names, strict=False):
            mean = [100 * column(part, k, row=name).mean() for k in keys]
            style = "-" if name == BASE else "--" if "σ" in name else ":"
            ax.plot(LOG_PENALTIES, mean, style, color=color, label=name)
        ax.set(title=f"{size} training pages", xlabel="log C")
    axes[0].set_ylabel("test error, %")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", fontsize="small")
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
