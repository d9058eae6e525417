"""EM-IS beside gradient ascent: figure 10 of the latent maximum entropy paper.

Wang, Schuurmans & Zhao (2012), section 7.2, claim that EM with iterative scaling is
substantially faster than gradient ascent of the log-likelihood; the figure is a curve
without numbers, and step length and starts of its gradient ascent are not given.

Here data come from the machines of `latent_boltzmann`, five visible and three hidden
units with standard normal weights, a new one in each draw. All ascents have the same
standard normal starts, the same model and weights within 15. An inner step is a sum
over all 256 states: a scaling step of the M step, or a step along the gradient, which
takes an E step, a sum over the few distinct rows, as well. Lengths of gradient steps
are constant; a step that lowers the likelihood is not taken back.
"""

import itertools

import numpy as np
from _latent import arguments
from _results import column, mean_and_error, run, table
from latent_boltzmann import VISIBLE, states, visible_probabilities

SIZES = [10, 100, 1000, 5000, 10_000]
INNER = (1, 4, 16)
LENGTHS = (0.1, 0.3, 1.0, 3.0)
STEPS = (16, 48, 160, 480, 1600)
BOUND = 15.0
HIDDEN = 3
BASE = "gradient, length 1"


def features():
    """Products of pairs of units, (32, 8, 28)."""
    x = states(VISIBLE + HIDDEN)
    i, j = np.triu_indices(VISIBLE + HIDDEN, 1)
    return (x[:, i] * x[:, j]).reshape(2**VISIBLE, 2**HIDDEN, -1)


def gradient_ascent(f, share, lam, length, steps):
    """Log-likelihoods (R,) of all starts after these numbers of steps, and falls.

    Starts `lam` are (R, N), `share` the shares (S,) of the observed values. The second
    array counts the steps of each start that lowered the likelihood.
    """
    rows = f.reshape(-1, f.shape[2])
    values, falls, last = {}, np.zeros(len(lam), dtype=int), np.full(len(lam), -np.inf)
    for n in range(max(steps) + 1):
        scores = (lam @ rows.T).reshape(-1, *f.shape[:2])
        p = np.exp(scores - scores.max(axis=(1, 2), keepdims=True))
        p /= p.sum(axis=(1, 2), keepdims=True)
        observed = p.sum(axis=2, keepdims=True)
        seen = share > 0
        value = np.log(observed[:, seen, 0]) @ share[seen]
        falls += value < last - 1e-12
        last = value
        if n in steps:
            values[n] = value
        excess = share[:, None] * (p / observed) - p
        lam = np.clip(
            lam + length * (excess.reshape(len(lam), -1) @ rows), -BOUND, BOUND
        )
    return values, falls


def scaling(model, y, lam, inner, steps):
    """Log-likelihoods (R,) of all starts after these numbers of inner steps."""
    from maxent.latent import em_is

    values, last = {}, max(steps) // inner

    def keep(n, objective, residual):
        if n * inner in steps:
            values[n * inner] = np.array(objective)
        return n == last

    em_is(model, y, lam, inner=inner, bound=BOUND, tol=1e-300, callback=keep)
    return values


def work_of(options):
    """Function of a draw and a size: a row for each ascent, means over the starts."""
    from maxent.latent import FiniteLatentModel

    f = features()
    model = FiniteLatentModel(f)
    steps = [n for n in STEPS if n <= options.steps]

    def work(draw, size):
        rng = np.random.default_rng([options.seed, 10, draw])
        p = visible_probabilities(HIDDEN, rng)
        starts = rng.normal(size=(options.starts, f.shape[2]))
        y = rng.choice(len(p), size=size, p=p)
        share = np.bincount(y, minlength=len(p)) / size
        found = {
            f"EM-IS, K = {K}": (scaling(model, y, starts, K, steps), "") for K in INNER
        }
        for length in LENGTHS:
            name = f"gradient, length {length:g}"
            found[name] = gradient_ascent(f, share, starts, length, steps)
        base = found[BASE][0]
        return [
            {"ascent": name, "falls": np.mean(falls) if name.startswith("g") else ""}
            | {f"after {n}": values[n].mean() for n in steps}
            | {f"ahead at {n}": np.mean(values[n] > base[n]) for n in steps}
            for name, (values, falls) in found.items()
        ]

    return work


def gap(rows, n, where):
    """Cell: log-likelihood less that of `BASE` after n inner steps, starts ahead."""
    base = column(rows, f"after {n}", **where | {"ascent": BASE})
    step = column(rows, f"after {n}", **where) - base
    ahead = 100 * column(rows, f"ahead at {n}", **where).mean()
    return f"{mean_and_error(step, 3)} ({ahead:.0f} %)"


def draw(rows, sizes, steps, path):
    """Mean log-likelihood against inner steps, a panel for each size."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.0 * len(sizes) + 1.5, 3.2), layout="constrained")
    axes = figure.subplots(1, len(sizes), squeeze=False)[0]
    for ax, size in zip(axes, sizes, strict=True):
        for name in dict.fromkeys(r["ascent"] for r in rows):
            where = {"ascent": name, "size": size}
            means = [column(rows, f"after {n}", **where).mean() for n in steps]
            ax.plot(steps, means, "--" if name[0] == "g" else "-", label=name)
        ax.set(title=f"{size} rows", xscale="log", xlabel="inner steps")
    axes[0].set_ylabel("mean log-likelihood")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", fontsize="small")
    figure.savefig(path, dpi=110)


def main():
    """Run and write."""
    parser = arguments(__doc__, 10, SIZES, 5)
    parser.add_argument("--steps", type=int, default=max(STEPS), help="inner steps")
    options = parser.parse_args()
    steps = [n for n in STEPS if n <= options.steps]
    units = [
        {"draw": k, "size": n} for k in range(options.draws) for n in options.sizes
    ]
    rows = run("latent_gradient", options, units, work_of(options))
    means, gaps = [], []
    names = list(dict.fromkeys(r["ascent"] for r in rows))
    for size, name in itertools.product(options.sizes, names):
        where = {"ascent": name, "size": size}
        cells = [f"{column(rows, f'after {n}', **where).mean():.3f}" for n in steps]
        falls = mean_and_error(column(rows, "falls", **where), 1)
        means.append([size, name, *cells, falls])
        if name != BASE:
            gaps.append([size, name, *(gap(rows, n, where) for n in steps)])
    head = ["rows", "ascent", *(f"after {n}" for n in steps)]
    table("latent_gradient", options, [*head, "steps that fall"], means)
    table("latent_gradient_paired", options, head, gaps)
    draw(rows, options.sizes, steps, f"{options.out}/latent_gradient.png")


if __name__ == "__main__":
    main()
