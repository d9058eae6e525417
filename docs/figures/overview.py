"""The four methods in a picture: boundary, kernel, mixture and motif."""

import matplotlib.pyplot as plt
import numpy as np

from maxent import LMEGaussianMixture, M3EMotifClassifier, MEDClassifier
from maxent.datasets import load_crabs, make_planted_motifs
from maxent.displays import MEDBoundaryDisplay, MotifLogoDisplay
from maxent.kernels import ProductKernel
from maxent.models import CategoricalHMM

figure = plt.figure(figsize=(9, 6), layout="constrained")
(one, two), (three, four) = figure.subfigures(2, 2)

# discrimination: sex of crabs by their shape, size taken out
crabs = load_crabs()
X = (crabs.data - crabs.data.mean(axis=0)) / crabs.data.std(axis=0)
Z = X @ np.linalg.svd(X, full_matrices=False)[2][1:3].T
Z /= Z.std(axis=0)
model = MEDClassifier(kernel="rbf", C=10, gamma=0.5).fit(Z, crabs.target)
display = MEDBoundaryDisplay.from_estimator(model, Z, crabs.target, ax=one.subplots())
display.ax_.set(xlabel="", ylabel="", xticks=[], yticks=[])
display.ax_.get_legend().remove()
display.ax_.set_title("Discrimination, with a proof of optimality")

# kernels: strings of two kinds, a Markov chain of each
laws = [
    CategoricalHMM(
        [0.5, 0.5],
        [[stay, 1 - stay], [1 - stay, stay]],
        [[0.4, 0.1, 0.1, 0.4], [0.1, 0.4, 0.4, 0.1]],
        alphabet="ACGT",
    )
    for stay in (0.95, 0.5)
]
strings = [x for law in laws for x in law.sample(30, 120, random_state=0)]
maker = ProductKernel(
    "MarkovChain", horizon=9, model_params={"alphabet": "ACGT", "smoothing": 0.5}
)
axes = two.subplots()
axes.imshow(maker.fit_transform(strings), cmap="viridis", interpolation="nearest")
axes.set(xticks=[15, 45], yticks=[], xticklabels=["strings with blocks", "mixed"])
axes.set_title("Kernels between models, one for each sequence")

# hidden variables: groups of heights that nobody labelled
rng = np.random.default_rng(3)
heights = np.append(rng.normal(161, 5, 120), rng.normal(182, 5, 100))[:, None]
latent = LMEGaussianMixture(2, n_init=20, random_state=0).fit(heights)
grid = np.linspace(140, 205, 300)[:, None]
density = np.exp(latent.score_samples(grid))
axes = three.subplots()
axes.hist(heights[:, 0], bins=25, density=True, color="0.85")
for part, colour in zip(latent.predict_proba(grid).T, ("#0072b2", "#d55e00")):
    axes.plot(grid[:, 0], part * density, c=colour, lw=1.5)
axes.plot(grid[:, 0], density, c="0.1", lw=1.5)
axes.set(xlabel="height, cm", yticks=[])
axes.set_title("Maximum entropy with hidden variables")

# hidden evidence: a motif somewhere in sequences of two classes
X, y, *_ = make_planted_motifs(400, 24, 8, information=1.8, random_state=1)
finder = M3EMotifClassifier(8, alpha=8.0, C=80.0, init="path", tol=1e-2).fit(X, y)
MotifLogoDisplay.from_estimator(finder, X, y, ax=four.subplots(2, 1))
four.suptitle("Evidence at an unknown place")
plt.show()
