"""The tasks of hmmlearn's example gallery, done with both packages.

casino       two dice that are swapped, 15,000 throws; as many again are kept aside
criteria     Gaussian states chosen by BIC from two to six, 1000 steps
decoding     four states in the plane, 250 steps; as many again are kept aside
words        multinomial counts of five words a sentence, five times ten sentences
earthquakes  counts a year of earthquakes of magnitude 7 and more, 1900 to 2006
variational  states chosen from one to six: by BIC here, there by the lower bound of
             VariationalGaussianHMM

Both take as many starts, hmmlearn in a loop of which the likeliest fit is kept, and end
a run where a step gains less than 1e-4 nats. hmmlearn computes with its faster
implementation="scaling". Other settings are defaults, but smoothing=0 here where states
show no densities. "gain" is the difference of the log-likelihoods of the data of the
fit, ours less theirs, in nats; "aside" that of the data that were kept aside.
"""

import argparse
import logging
import statistics
import warnings
from dataclasses import dataclass, field
from functools import partial

from _race import Report, arguments, describe, pin, race

TOL, STEPS = 1e-4, 2000
SETTINGS = {"implementation": "scaling", "tol": TOL, "n_iter": STEPS}  # hmmlearn's
# counts a year, U.S. Geological Survey; Zucchini & MacDonald (2009), table 1.1
EARTHQUAKES = (
    *(13, 14, 8, 10, 16, 26, 32, 27, 18, 32, 36, 24, 22, 23, 22, 18, 25, 21, 21, 14),
    *(8, 11, 14, 23, 18, 17, 19, 20, 22, 19, 13, 26, 13, 14, 22, 24, 21, 22, 26, 21),
    *(23, 24, 27, 41, 31, 27, 35, 26, 28, 36, 39, 21, 17, 22, 17, 19, 15, 34, 10, 15),
    *(22, 18, 15, 20, 15, 22, 19, 16, 30, 27, 29, 23, 20, 16, 21, 21, 25, 16, 18, 15),
    *(18, 14, 10, 15, 8, 15, 6, 11, 8, 7, 18, 16, 13, 12, 13, 20, 15, 16, 12, 18),
    *(15, 16, 13, 15, 16, 11, 11),
)


def main():
    """Run the parts asked for."""
    parser = arguments(argparse.ArgumentParser(description=__doc__.splitlines()[0]))
    parts = (casino, criteria, decoding, words, earthquakes, variational)
    parts = {part.__name__: part for part in parts}
    parser.add_argument("--parts", nargs="*", default=list(parts), choices=list(parts))
    parser.add_argument("--starts", type=int, default=10, help="of a fit (default 10)")
    options = parser.parse_args()
    if options.quick:
        options.starts = min(options.starts, 2)
    pin(1)
    warnings.simplefilter("ignore")
    logging.getLogger("hmmlearn").setLevel(logging.ERROR)
    describe("hmmlearn's examples", [f"{options.starts} starts"], ["hmmlearn"])
    report = Report(options.csv)
    for part in options.parts:
        parts[part](options, report)
    report.table()


@dataclass
class Contest:
    """Fits of one kind to sequences of one length.

    `fit` makes a model of ours from n, n_init and tol; `peer` an estimator of hmmlearn
    from n and settings; `X` are the rows of all sequences, `aside` rows kept aside.
    """

    name: str
    fit: object
    peer: object
    X: object
    lengths: object = None
    aside: object = None
    chosen: dict = field(default_factory=lambda: {"ours": [], "peer": []})

    def __post_init__(self):
        # the same nats for both: here `tol` is a share of the objective
        one = self.fit(1, 1, 1e-8).log_likelihood(self.X, self.lengths).sum()
        self.tol = TOL / (1.0 + abs(float(one)))

    def theirs(self, n, starts):
        """The likeliest of hmmlearn's fits."""
        X, lengths = rows(self.X), self.lengths
        fits = [self.peer(n, random_state=k, **SETTINGS) for k in range(starts)]
        return max(fits, key=lambda h: h.fit(X, lengths).score(X, lengths))

    def run(self, n, options, report, note=None):
        """Race fits of n states and add a row."""
        starts = options.starts
        outcome = race(
            lambda: self.fit(n, starts, self.tol),
            lambda: self.theirs(n, starts),
            options.pairs,
        )
        models = outcome.ours.result, outcome.peer.result
        gain = self.gain(models, self.X, self.lengths)
        aside = "–" if self.aside is None else f"{self.gain(models, self.aside):+.2g}"
        bic = models[0].bic(self.X, self.lengths)
        self.chosen["ours"].append((bic, n))
        self.chosen["peer"].append((models[1].bic(rows(self.X), self.lengths), n))
        check = note(*models) if note else self.choices()
        add(report, self.name, n, starts, outcome, f"{gain:+.2g}", aside, check)

    def gain(self, models, X, lengths=None):
        """Log-likelihood of ours less that of theirs."""
        ours, peer = models
        mine = ours.log_likelihood(X, lengths).sum()
        return float(mine) - peer.score(rows(X), lengths)

    def choices(self):
        """Numbers of states of the least BIC until now."""
        mine, theirs = (min(self.chosen[who])[1] for who in ("ours", "peer"))
        return f"least BIC: {mine}, {theirs}"


def rows(X):
    """As hmmlearn takes symbols and counts: one column."""
    return X[:, None] if X.ndim == 1 else X


def states_right(truth, X):
    """Note: shares of the steps that both decode, the states renamed as fits best."""
    import numpy as np
    from scipy.optimize import linear_sum_assignment

    def share(path):
        table = np.zeros((path.max() + 1, truth.max() + 1))
        np.add.at(table, (path, truth), 1)
        return table[linear_sum_assignment(-table)].sum() / len(truth)

    def note(ours, peer):
        mine, theirs = ours.viterbi(X)[0][0], peer.predict(rows(X))
        return f"states right: {share(mine):.1%}, {share(theirs):.1%}"

    return note


def add(report, name, n, starts, outcome, gain, aside, check):
    """One row."""
    ratio = statistics.median(outcome.cpu_ratios)
    row = {"example": name, "states": n, "starts": starts}
    for who in ("ours", "peer"):
        seconds = statistics.median(getattr(outcome, who).cpu_seconds)
        row[f"{who}, s"] = f"{seconds:.3g}"
    row |= {"ratio": f"{ratio:.3f}", "gain": gain, "aside": aside, "check": check}
    report.add(row)


# -- the tasks -------------------------------------------------------------------------
def casino(options, report):
    """A fair die and one that shows a six in half of its throws."""
    from hmmlearn.hmm import CategoricalHMM as Peer

    from maxent.models import CategoricalHMM

    loaded = [0.1] * 5 + [0.5]
    truth = CategoricalHMM(
        [1.0, 0.0], [[0.95, 0.05], [0.1, 0.9]], [[1 / 6] * 6, loaded]
    )
    size = 2000 if options.quick else 15_000
    X, Z = truth.sample(1, 2 * size, 1, return_states=True)

    def ours(n, n_init, tol):
        return CategoricalHMM.fit(
            X[0][:size],
            n,
            n_init=n_init,
            tol=tol,
            max_iter=STEPS,
            smoothing=0,
            random_state=0,
        )

    contest = Contest("casino", ours, Peer, X[0][:size], aside=X[0][size:])
    contest.run(2, options, report, states_right(Z[0], X[0]))


def gaussian(X, kind):
    """Fits of Gaussian states to X, by both."""
    from hmmlearn.hmm import GaussianHMM as Peer

    from maxent.models import GaussianHMM

    def ours(n, n_init, tol):
        return GaussianHMM.fit(
            X,
            n,
            covariance_type={"diag": "diagonal"}.get(kind, kind),
            n_init=n_init,
            tol=tol,
            max_iter=STEPS,
            random_state=0,
        )

    return ours, partial(Peer, covariance_type=kind)


def criteria(options, report):
    """Four states on a line whose ranges touch."""
    from maxent.models import GaussianHMM

    move = [
        [0.3, 0.4, 0.2, 0.1],
        [0.1, 0.2, 0.3, 0.4],
        [0.5, 0.2, 0.1, 0.2],
        [0.25] * 4,
    ]
    mean = [[-2.5], [0.0], [2.5], [5.0]]
    truth = GaussianHMM([0.25] * 4, move, mean, [[0.5]] * 4)
    X = truth.sample(1, 1000, 0)[0]
    contest = Contest("criteria", *gaussian(X, "diag"), X)
    for n in range(2, 7):
        contest.run(n, options, report)


def decoding(options, report):
    """Four states in the plane, with steps between them that do not occur."""
    import numpy as np

    from maxent.models import GaussianHMM

    move = [
        [0.7, 0.2, 0, 0.1],
        [0.3, 0.5, 0.2, 0],
        [0, 0.3, 0.5, 0.2],
        [0.2, 0, 0.2, 0.6],
    ]
    mean = [[0.0, 0.0], [0.0, 11.0], [9.0, 10.0], [11.0, -1.0]]
    cov = np.tile(0.5 * np.eye(2), (4, 1, 1))
    truth = GaussianHMM([0.6, 0.3, 0.1, 0.0], move, mean, cov)
    X, Z = truth.sample(1, 500, 0, return_states=True)
    contest = Contest("decoding", *gaussian(X[0][:250], "full"), X[0][:250])
    contest.aside = X[0][250:]
    for n in (3, 4, 5):
        contest.run(n, options, report, states_right(Z[0], X[0]))


def words(options, report):
    """Two topics, five words of four a sentence."""
    import numpy as np
    from hmmlearn.hmm import MultinomialHMM as Peer

    from maxent.families import Multinomial
    from maxent.models import HiddenMarkovModel

    topic = Multinomial([[0.25, 0.1, 0.4, 0.25], [0.2, 0.5, 0.1, 0.2]], 5)
    truth = HiddenMarkovModel([0.6, 0.4], [[0.8, 0.2], [0.2, 0.8]], topic)
    X = np.concatenate(truth.sample(5, 10, 0)).astype(int)
    lengths = [10] * 5

    def ours(n, n_init, tol):
        return HiddenMarkovModel.fit(
            X, n, lengths=lengths, family=Multinomial, n_init=n_init, tol=tol,
            max_iter=STEPS, smoothing=0, random_state=0,
        )  # fmt: skip

    contest = Contest("words", ours, partial(Peer, n_trials=5), X, lengths)
    for n in (1, 2):
        contest.run(n, options, report)


def earthquakes(options, report):
    """Poisson states of yearly counts."""
    import numpy as np
    from hmmlearn.hmm import PoissonHMM as Peer

    from maxent.families import Poisson
    from maxent.models import HiddenMarkovModel

    X = np.array(EARTHQUAKES)

    def ours(n, n_init, tol):
        return HiddenMarkovModel.fit(
            X,
            n,
            family=Poisson,
            n_init=n_init,
            tol=tol,
            max_iter=STEPS,
            smoothing=0,
            random_state=0,
        )

    contest = Contest("earthquakes", ours, Peer, X)
    for n in range(1, 5):
        contest.run(n, options, report)


def variational(options, report):
    """The number of states, by BIC and by a variational bound."""
    from hmmlearn.vhmm import VariationalGaussianHMM

    from maxent.models import GaussianHMM, select

    move = [[0.2, 0.2, 0.3, 0.3], [0.3, 0.2, 0.2, 0.3], [0.2, 0.3, 0.3, 0.2]]
    move.append([0.3, 0.3, 0.2, 0.2])
    mean = [[-1.5], [0.0], [1.5], [3.0]]
    truth = GaussianHMM([0.25] * 4, move, mean, [[0.0625]] * 4)
    X = truth.sample(1, 500, 0)[0]
    starts, sizes = max(options.starts // 2, 1), range(1, 7)

    def ours():
        kept = {"n_init": starts, "tol": 1e-7, "max_iter": STEPS}
        return select(GaussianHMM, X, sizes, random_state=0, **kept)

    def peer():
        best = []
        for n in sizes:
            for seed in range(starts):
                h = VariationalGaussianHMM(n, random_state=seed, **SETTINGS)
                best.append((h.fit(X).monitor_.history[-1], n))
        return max(best)

    outcome = race(ours, peer, options.pairs)
    check = f"chosen: {outcome.ours.result.n}, {outcome.peer.result[1]}"
    add(report, "variational", "1 to 6", starts, outcome, "–", "–", check)


if __name__ == "__main__":
    main()
