"""Two clusters under one Gaussian and under a mixture; scores of hidden states."""

import matplotlib.pyplot as plt
import numpy as np

from maxent import MEDOutlierDetector, MEDSequenceOutlierDetector
from maxent.discrimination import LatentMixture

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 2)) * [1.0, 0.6]
X[:80] += [6.0, 4.0]
models = {
    "one Gaussian": "gaussian",
    "mixture of two": LatentMixture("gaussian", 2, random_state=0),
}
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
left.plot(*X.T, ".", color="0.6", markersize=4)
across, up = np.meshgrid(np.linspace(-5, 11, 120), np.linspace(-4, 8, 120))
for colour, (name, model) in zip(("C1", "C0"), models.items()):
    detector = MEDOutlierDetector(model, contamination=0.05).fit(X)
    above = detector.decision_function(np.column_stack([across.ravel(), up.ravel()]))
    shown = above.reshape(across.shape)
    left.contour(across, up, shown, levels=[0.0], colors=colour, linewidths=2)
    left.plot([], [], colour, label=name)
left.set(title="border of the normal rows", xlabel="column 0", ylabel="column 1")
left.legend(loc="upper left")


def rounds(n):
    """Sequences that go round the alphabet, a tenth of the letters wrong."""
    codes = (rng.integers(0, 3, size=(n, 1)) + np.arange(20)) % 3
    wrong = rng.random(codes.shape) < 0.1
    return np.where(wrong, rng.integers(0, 3, codes.shape), codes)


options = {"n_init": 2, "tol": 1e-4, "random_state": 0, "contamination": 0.05}
chain = MEDSequenceOutlierDetector(3, n_symbols=3, **options)
chain.fit(rounds(60))
normal = rounds(200)
for name, rows in {
    "new normal sequences": normal,
    "letters shuffled": rng.permuted(normal, axis=1),
}.items():
    right.hist(chain.score_samples(rows), bins=25, alpha=0.6, label=name)
right.axvline(chain.offset_, color="k", linestyle=":", label="offset")
right.set(title="hidden Markov model, 3 states", xlabel="score, nats per letter")
right.legend(loc="upper left")
plt.show()
