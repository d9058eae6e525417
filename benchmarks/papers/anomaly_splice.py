"""Anomaly detection on splice sites: figure 9 of the MED paper, with another data set.

Jaakkola, Meila & Jebara (1999), Maximum entropy discrimination, section 4: a product of
multinomials over the 25 letters around true splice sites, trained on 7000 of them,
tested on 1192 true and 3532 false ones; the MED distribution against the Bayes
posterior of the same Dirichlet prior. Claims: training log-likelihoods more uniform,
without a long lower tail, and a better ROC curve. No numbers are printed, and the data
are not identified.

Protocol here: `human_sites.csv.gz` in the data folder, with columns site, label (1
true, 0 false) and sequence (140 letters, GT at positions 70 and 71 of donors, false
ones included); 8000 true and 8000 false donors. Windows of 25 letters, 12 before the
GT. A draw puts 1192 true and 3532 false donors into the test set and trains on the
other 6808 true ones. All category counts have the prior pseudo-count 1.

No setting is chosen: the first MED row has quantile 0.2 and C 1, the others change
one thing or two, and every one of them is in the table. Scores are expected
log-likelihoods.

With --latent the models have hidden variables: mixtures of 2 and 3 such products, and
hidden Markov models of 2 to 5 states, at quantiles 0.2 and 0.5 and C 1. With --onward
they are left-to-right chains of 5 and 8 states, which begin in the first one and stay
or go on to the next, so that they know where in a window they are. Each is compared
with its own Bayes posterior, the same model with every row at weight one (variational,
the best of the same starts); scores are the lower bounds of the expected
log-likelihoods.
"""

import csv
import gzip

import numpy as np
from _results import column, parser, run, share, table
from fetch import found

TRUE_TEST, FALSE_TEST = 1192, 3532
WINDOW = slice(58, 83)
SETTINGS = {
    "MED, quantile 0.2, C 1": {"quantile": 0.2},
    "MED, quantile 0.05, C 1": {"quantile": 0.05},
    "MED, quantile 0.5, C 1": {"quantile": 0.5},
    "MED, quantile 0.2, C 10": {"quantile": 0.2, "C": 10.0},
    "MED, quantile 0.05, C 10": {"quantile": 0.05, "C": 10.0},
}
BAYES, DEFAULT = "Bayes posterior", next(iter(SETTINGS))
COMPONENTS, STATES, QUANTILES = (2, 3), (2, 3, 4, 5), (0.2, 0.5)
ONWARD = (5, 8)  # states of left-to-right chains
STARTS = 3


def load(folder):
    """Codes 0..3 of the windows (n, 25) and whether each donor is true (n,)."""
    path = found(folder, "human_sites.csv.gz")
    with gzip.open(path, "rt", encoding="ascii") as stream:
        rows = [row for row in csv.DictReader(stream) if row["site"] == "donor"]
    letters = np.array([list(row["sequence"][WINDOW]) for row in rows])
    codes = np.searchsorted(list("ACGT"), letters)
    if not (np.array(list("ACGT"))[codes] == letters).all():
        raise SystemExit(f"{path} holds letters other than A, C, G, T")
    return codes, np.array([row["label"] == "1" for row in rows])


def split(codes, true, rng):
    """Training rows, test rows, and which of the latter are true sites."""
    yes = rng.permutation(np.flatnonzero(true))
    no = rng.permutation(np.flatnonzero(~true))[:FALSE_TEST]
    train = codes[yes[TRUE_TEST:]]
    test = codes[np.concatenate([yes[:TRUE_TEST], no])]
    return train, test, np.arange(len(test)) < TRUE_TEST


def one_draw(codes, true, rng):
    """Test labels, and training and test scores by model, of one draw."""
    from maxent import MEDOutlierDetector
    from maxent.families import DirichletProduct

    train, test, normal = split(codes, true, rng)
    prior = DirichletProduct(1.0, [4] * codes.shape[1])
    bayes = prior.posterior(train)
    scores = {BAYES: (bayes.expected_log_prob(train), bayes.expected_log_prob(test))}
    support = {BAYES: len(train)}
    for name, setting in SETTINGS.items():
        model = MEDOutlierDetector(prior, **setting).fit(train)
        if not model.converged_:
            raise RuntimeError(f"{name} did not converge")
        scores[name] = model.score_samples(train), model.score_samples(test)
        support[name] = len(model.support_)
    return normal, scores, support


def latent_draw(codes, true, rng, models):
    """As `one_draw`, for models with hidden variables."""
    train, test, normal = split(codes, true, rng)
    scores, support = {}, {}
    for kind, detector in models:
        for quantile in QUANTILES:
            model = detector.set_params(quantile=quantile).fit(train)
            bayes = model.baseline_.expected_log_prob
            scores[f"{kind}, Bayes"] = bayes(train), bayes(test)
            support[f"{kind}, Bayes"] = len(train)
            name = f"{kind}, MED, quantile {quantile}"
            scores[name] = model.score_samples(train), model.score_samples(test)
            support[name] = len(model.support_)
            if not model.converged_:
                raise RuntimeError(f"{name} did not converge")
    return normal, scores, support


def latent_models(columns, starts=STARTS):
    """Name and detector of every model with hidden variables."""
    from maxent import MEDOutlierDetector, MEDSequenceOutlierDetector
    from maxent.discrimination import LatentMixture
    from maxent.families import DirichletProduct

    prior = DirichletProduct(1.0, [4] * columns)
    for k in COMPONENTS:
        model = LatentMixture(prior, k, starts, 0, tol=1e-4)
        yield f"mixture of {k}", MEDOutlierDetector(model)
    options = {"n_symbols": 4, "normalize": None, "n_init": starts, "tol": 1e-4}
    for k in STATES:
        detector = MEDSequenceOutlierDetector(k, random_state=0, **options)
        yield f"HMM of {k} states", detector


def onward_models(columns, starts=STARTS):
    """Name and detector of every left-to-right chain."""
    from maxent import MEDSequenceOutlierDetector

    options = {"n_symbols": 4, "normalize": None, "n_init": starts, "tol": 1e-4}
    for k in ONWARD:
        counts = {"start": np.eye(k)[0], "transition": np.eye(k) + np.eye(k, k=1)}
        detector = MEDSequenceOutlierDetector(
            k, pseudo_count=counts, random_state=0, **options
        )
        yield f"left-to-right HMM of {k} states", detector


def bayes_of(name):
    """The Bayes posterior that a model is compared with."""
    return BAYES if name in (BAYES, *SETTINGS) else f"{name.split(',')[0]}, Bayes"


def main():
    """Run the draws; write the table, its numbers, and the figure of the first draw."""
    out = parser(__doc__, 10, "human_sites.csv.gz")
    kinds = out.add_mutually_exclusive_group()
    kinds.add_argument("--latent", action="store_true", help="hidden variables")
    kinds.add_argument("--onward", action="store_true", help="left-to-right chains")
    options = out.parse_args()
    from maxent.displays import ROCComparisonDisplay
    from maxent.displays.roc import compare_scores

    codes, true = load(options.data)
    name = "anomaly_splice"
    if options.latent or options.onward:
        name += "_latent" if options.latent else "_onward"

    def work(draw):
        rng = np.random.default_rng([options.seed, draw])
        columns = codes.shape[1]
        if options.latent or options.onward:
            models = (latent_models if options.latent else onward_models)(columns)
            normal, scores, support = latent_draw(codes, true, rng, models)
        else:
            normal, scores, support = one_draw(codes, true, rng)
        tests = {model: test for model, (_, test) in scores.items()}
        roc = ROCComparisonDisplay(*compare_scores(normal, tests), list(tests))
        if draw == 0:
            picture(normal, scores, f"{options.out}/{name}.png")
        rows = []
        for k, (model, (train, _)) in enumerate(scores.items()):
            step, error = roc.difference(model, bayes_of(model))
            row = {"model": model, "auc": roc.auc[k], "se": roc.standard_error[k]}
            row |= {"minus_bayes": step, "se_minus_bayes": error}
            row |= {"least": train.min(), "sd": train.std()}
            rows.append(row | {"support": support[model]})
        return rows

    rows = run(name, options, [{"draw": k} for k in range(options.draws)], work)
    head = ["model", "AUC", "minus Bayes", "draws above Bayes"]
    head += ["least training log-likelihood", "sd of them", "rows with a multiplier"]
    models = dict.fromkeys(r["model"] for r in rows)
    table(name, options, head, [line(rows, model) for model in models])


def line(rows, model):
    """Cells of a model: means, with the mean standard errors of one test set."""

    def mean(key):
        return column(rows, key, model=model).mean()

    compared = ["", ""]
    if model != bayes_of(model):
        compared = [f"{mean('minus_bayes'):+.4f} ± {mean('se_minus_bayes'):.4f}"]
        compared.append(share(column(rows, "minus_bayes", model=model) > 0))
    area = f"{mean('auc'):.4f} ± {mean('se'):.4f}"
    rest = f"{mean('least'):.1f}", f"{mean('sd'):.2f}", f"{mean('support'):.0f}"
    return [model, area, *compared, *rest]


def picture(normal, scores, path):
    """Training log-likelihoods and ROC curves of the first draw, Bayes against MED."""
    from matplotlib.figure import Figure

    from maxent.displays import LogLikelihoodDisplay, ROCComparisonDisplay

    names = (BAYES, DEFAULT) if BAYES in scores else list(scores)[:2]
    shown = {name: scores[name] for name in names}
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    axes = figure.subplots(1, 2)
    training, test = ({n: s[k] for n, s in shown.items()} for k in (0, 1))
    LogLikelihoodDisplay.from_scores(training, ax=axes[0])
    ROCComparisonDisplay.from_predictions(normal, test, ax=axes[1])
    axes[0].set_title("true donor sites, training")
    axes[1].set(
        title="true against false, test",
        xlabel="share of false sites taken for true",
        ylabel="share of true sites recognised",
    )
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
