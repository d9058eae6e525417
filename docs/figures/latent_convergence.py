"""Likelihood after each E step: K = 1, K = 4, and L-BFGS on the likelihood."""

import matplotlib.pyplot as plt
import numpy as np

from maxent.displays import ConvergenceDisplay
from maxent.latent import FiniteLatentModel

rng = np.random.default_rng(3)
# two classes of three tosses each of five coins: y counts heads, 4^5 values
heads = np.stack(np.meshgrid(*[np.arange(4.0)] * 5, indexing="ij"), -1).reshape(-1, 5)
features = np.zeros((len(heads), 2, 11))
features[:, 0, 0] = 1.0
features[:, 0, 1:6] = features[:, 1, 6:] = heads
rates = rng.uniform(0.1, 0.9, size=(2, 5))
rows = rng.binomial(3, rates[rng.integers(2, size=300)])
y = rows @ 4 ** np.arange(4, -1, -1)
ConvergenceDisplay.from_model(
    FiniteLatentModel(features), y, rng.normal(size=11), n_steps=300
)
plt.show()
