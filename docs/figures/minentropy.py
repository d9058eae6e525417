"""A motif with its places, and windows of images, as the models find them."""

import matplotlib.pyplot as plt
import numpy as np

from maxent import M3EGridClassifier, M3EMotifClassifier
from maxent.datasets import make_planted_motifs
from maxent.displays import HiddenPositionDisplay, MotifLogoDisplay

X, y, motif, places = make_planted_motifs(400, 24, 8, information=1.8, random_state=1)
finder = M3EMotifClassifier(8, alpha=8.0, C=80.0, init="path", tol=1e-2).fit(X, y)

rng = np.random.default_rng(0)
images = 0.5 * rng.standard_normal((80, 8, 8))
label, corner = np.arange(80) % 2, rng.integers(6, size=(80, 2))
cross = np.array([[2.0, -1.0, 2.0], [-1.0, 2.0, -1.0], [2.0, -1.0, 2.0]])
for image, (row, column), sign in zip(images, corner, 2 * label - 1, strict=True):
    image[row : row + 3, column : column + 3] += sign * cross
seeker = M3EGridClassifier((3, 3), alpha=8.0, C=40.0, mode="blocks", init="path")
seeker.fit(images, label)

fig = plt.figure(figsize=(8.5, 6.2), layout="constrained")
upper, lower = fig.subfigures(2, 1, height_ratios=[2, 1])
MotifLogoDisplay.from_estimator(finder, X, y, ax=upper.subplots(2, 1))
upper.suptitle("A motif learnt from 400 sequences, and where they have it")
HiddenPositionDisplay.from_estimator(
    seeker,
    images[:6],
    images[:6],
    boxes=np.column_stack([corner[:6], np.full((6, 2), 3)]),
    ax=lower.subplots(1, 6),
)
lower.suptitle("Windows found in images (solid) and the true ones (dashed)")
plt.show()
