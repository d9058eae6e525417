"""
Find outliers
=============

A model of the normal rows that also reaches those which a density fitted by Bayes' rule
gives up. Benign cases are normal, malignant ones are to be found.
"""

import matplotlib.pyplot as plt
import numpy as np

from maxent import MEDOutlierDetector
from maxent.datasets import load_breast_cancer_wisconsin
from maxent.displays import LogLikelihoodDisplay, ROCComparisonDisplay
from maxent.families import DirichletProduct

X, malignant = load_breast_cancer_wisconsin(return_X_y=True)
codes = X.astype(int) - 1  # nine scores from 1 to 10
order = np.random.default_rng(0).permutation(np.flatnonzero(malignant == 0))
train, rest = order[:300], order[300:]
test = np.concatenate([rest, np.flatnonzero(malignant == 1)])

# %%
# The posterior by Bayes' rule, and the detector with the same prior.

prior = DirichletProduct(1.0, n_categories=[10] * 9)
models = {
    "Bayes posterior": prior.posterior(codes[train]),
    "MED": MEDOutlierDetector(prior, quantile=0.2).fit(codes[train]),
}

# %%
# Log-likelihoods of the training rows, and ROC curves of the test rows.

figure, axes = plt.subplots(1, 2, figsize=(8.6, 3.8), layout="constrained")
LogLikelihoodDisplay.from_models(models, codes[train], ax=axes[0], bins=30)
axes[0].set_title("300 benign cases, training")
scores = {
    "Bayes posterior": models["Bayes posterior"].expected_log_prob(codes[test]),
    "MED": models["MED"].score_samples(codes[test]),
}
normal = malignant[test] == 0
ROCComparisonDisplay.from_predictions(normal, scores, ax=axes[1])
axes[1].set(
    title="benign against malignant, test",
    xlabel="share of malignant cases taken for benign",
    ylabel="share of benign cases recognised",
)
plt.show()
