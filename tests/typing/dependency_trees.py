"""Tree, Bayes-net and Gaussian classifiers, and sums over spanning trees."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maxent import (
    ChowLiuClassifier,
    MEDBayesNetClassifier,
    MEDGaussianClassifier,
    MEDTreeClassifier,
)
from maxent.discrimination import (
    SpanningTrees,
    chow_liu_tree,
    sample_spanning_trees,
    spanning_tree_log_partition,
)

rng = np.random.default_rng(0)
y = rng.integers(2, size=80)
letters = np.array(list("ACGT"))[(rng.integers(3, size=(80, 4)) + y[:, None]) % 4]

trees = MEDTreeClassifier(C=2.0, ess=2.0).fit(letters, y)
edges: NDArray[np.float64] = trees.edge_probabilities_
print(trees.predict(letters)[:5], edges.shape, trees.score(letters, y))
print(trees.sample_trees(3, random_state=0))

plain = ChowLiuClassifier(class_prior="uniform").fit(letters, y)
probabilities: NDArray[np.float64] = plain.predict_proba(letters)
net = MEDBayesNetClassifier(parents=[(), (0,), (1,), (2,)]).fit(letters, y)
print(probabilities.shape, net.decision_function(letters)[:3])

X = rng.normal(size=(80, 2)) + y[:, None]
generative = MEDGaussianClassifier(C=2.0, percentile=50).fit(X, y)
print(generative.means_, generative.predict([[0.0, 0.0]]))

W = rng.normal(size=(5, 5))
W = W + W.T
np.fill_diagonal(W, -np.inf)
value, probability = spanning_tree_log_partition(W, marginals=True)
print(float(value), probability.shape, sample_spanning_trees(W, 2, random_state=1))
first: SpanningTrees = trees.posteriors_[0]
print(first.predictive_log_prob([[0, 1, 2, 0]]))
print(chow_liu_tree(rng.integers(2, size=(50, 4))))
