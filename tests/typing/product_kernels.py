"""Product kernels of batches, of lists of models, and in a pipeline."""

from __future__ import annotations

import numpy as np
from sklearn.pipeline import make_pipeline

from maxent import MEDClassifier
from maxent.displays import HorizonDisplay
from maxent.families import Poisson
from maxent.kernels import (
    ProductKernel,
    SharedSample,
    hellinger_distance,
    product_kernel,
    shared_sample_features,
)
from maxent.models import MarkovChain

K = product_kernel(Poisson([1.0, 2.0]), rho=[0.5, 1.0], normalize=True)
total: float = float(K.sum())
chains = [MarkovChain([0.5, 0.5], [[a, 1 - a], [1 - a, a]]) for a in (0.2, 0.7)]
product_kernel(chains, horizon=range(4), length_law=None, method="auto", log=True)
product_kernel(chains, horizon=4, length_law="geometric")
distance = hellinger_distance(chains, horizon=3)
sample = SharedSample(chains, horizon=2, n_samples=10, random_state=0)
features = shared_sample_features(chains, sample=sample)
error = sample.standard_error(chains) + features[:, :2]
HorizonDisplay.from_models(chains, range(3)).plot(lw=2)

X = np.array([[3, 1], [2, 2], [0, 4], [1, 5]])
machine = make_pipeline(
    ProductKernel("multinomial", rho=0.5), MEDClassifier(kernel="precomputed")
)
machine.fit(X, [0, 0, 1, 1]).predict(X)
