"""Validation errors over alpha and C, where many places count and where one does."""

import matplotlib.pyplot as plt
import numpy as np

from maxent import M3EMotifClassifier
from maxent.datasets import make_motif_occupancy, make_planted_motifs
from maxent.displays import AlphaPathDisplay

data = {
    "all places add up (occupancy)": make_motif_occupancy(400, 24, 6, random_state=0),
    "one true place (planted)": make_planted_motifs(
        400, 24, 6, information=1.9, random_state=0
    ),
}
fig = plt.figure(figsize=(9.0, 3.6), layout="constrained")
for part, (title, (X, y, *_)) in zip(fig.subfigures(1, 2), data.items(), strict=True):
    AlphaPathDisplay.from_estimator(
        M3EMotifClassifier(6, background=0, init="path", tol=1e-2),
        *(X, y),
        **{"alphas": [0.0, 1.0, 8.0, np.inf], "C": [4.0, 40.0, 400.0], "cv": 3},
        ax=part.subplots(),
    )
    part.suptitle(title)
plt.show()
