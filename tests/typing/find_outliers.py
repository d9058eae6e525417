"""Outlier detection with a Gaussian, a prior of one's own, and a kernel block."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maxent import MEDOutlierDetector, MEDSequenceOutlierDetector
from maxent.discrimination import LatentMixture
from maxent.families import NormalInverseWishart

rng = np.random.default_rng(0)
X = np.concatenate([rng.normal(size=(80, 2)), rng.normal(5.0, 0.5, size=(4, 2))])

detector = MEDOutlierDetector("gaussian", quantile=0.5).fit(X)
signs: NDArray[np.int64] = detector.predict(X)
scores: NDArray[np.float64] = detector.score_samples(X)
print((signs < 0).sum(), scores.min(), detector.offset_)

wide = NormalInverseWishart(np.zeros(2), 1.0, 4.0, 4.0 * np.eye(2))
strict = MEDOutlierDetector(wide, level=-3.0, margin="exponential", tol=1e-6)
print(strict.fit(X).decision_function([[0.0, 0.0], [9.0, 9.0]]))
print(strict.fit_predict(X, sample_weight=np.ones(len(X))).shape)

mixture = LatentMixture("gaussian", n_components=2, n_init=2, random_state=0)
kinds = MEDOutlierDetector(mixture, contamination=0.05).fit(X)
print(kinds.divergences_.min(), kinds.posterior_.responsibilities(X).shape)

chain = MEDSequenceOutlierDetector(2, alphabet="ab", n_init=1, random_state=0)
steps: NDArray[np.float64] = chain.fit(["abab", "baba", "aba"]).score_samples(["aab"])
print(steps, chain.posterior_.expected_model(alphabet="ab").n_states)
