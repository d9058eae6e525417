"""Candidates of a mixture: entropy against likelihood, chosen ones marked."""

import matplotlib.pyplot as plt
import numpy as np

from maxent import LMEGaussianMixture
from maxent.displays import CandidatesDisplay

rng = np.random.default_rng(0)
means = np.array([[0.0, -3.0], [0.0, 0.0], [0.0, 3.0]])
X = means[rng.integers(3, size=50)] + rng.normal(size=(50, 2)) * [np.sqrt(2), 1]
model = LMEGaussianMixture(
    3, n_init=200, init_params="random_from_data", random_state=0
).fit(X)
CandidatesDisplay.from_estimator(model)
plt.show()
