"""
Select features
===============

Every feature has a random switch; the fit returns the probability that it is in use.
Nine scores of tumour cells compete with nine shuffled copies of themselves.
"""

import matplotlib.pyplot as plt
import numpy as np

from maxent import MEDFeatureSelector
from maxent.datasets import load_breast_cancer_wisconsin

data = load_breast_cancer_wisconsin()
noise = np.random.default_rng(0).permutation(data.data)
X = np.hstack([data.data, noise])
X = 0.1 * (X - X.mean(axis=0)) / X.std(axis=0)
names = [name.replace("_", " ") for name in data.feature_names]
names += [f"noise {k + 1}" for k in range(9)]

# %%
# Three prior probabilities (dotted): the smaller, the more a feature must bring.

figure, axes = plt.subplots(figsize=(6.4, 4.6), layout="constrained")
place = np.arange(18)[::-1]
styles = (("o", "#0072b2"), ("s", "#e69f00"), ("^", "#009e73"))
for prior, (marker, colour) in zip((0.3, 0.1, 0.02), styles):
    model = MEDFeatureSelector(prior_inclusion=prior, C=1.0).fit(X, data.target)
    axes.axvline(prior, c=colour, ls=":", lw=1)
    axes.plot(
        model.inclusion_proba_, place, marker, c=colour, ms=5, label=f"prior {prior}"
    )
axes.axhspan(-0.5, 8.5, color="0.95", zorder=0)
axes.set(
    xlabel="probability that the feature is in use", xlim=(0, 1), ylim=(-0.5, 17.5)
)
axes.set_yticks(place, names)
axes.legend(loc="lower right")
plt.show()
