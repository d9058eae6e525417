"""
Classify sequences by their models
==================================

Strings of two kinds with the same letters, but not in the same order. Each string
becomes a Markov chain, two chains have a kernel, and the kernel goes into any machine.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from maxent import MEDClassifier
from maxent.displays import GramDisplay
from maxent.kernels import ProductKernel
from maxent.models import CategoricalHMM

# %%
# Sixty strings of 120 letters, drawn from hidden Markov models that stay in their state
# for twenty letters, or for two.

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
y = np.repeat(["blocks", "mixed"], 30)

# %%
# A pipeline from strings to labels.

kernel = ProductKernel(
    "MarkovChain", horizon=9, model_params={"alphabet": "ACGT", "smoothing": 0.5}
)
machine = make_pipeline(kernel, MEDClassifier(kernel="precomputed", C=100))
accuracy = cross_val_score(machine, strings, y, cv=5)
print(f"accuracy, 5 folds: {accuracy.mean():.2f}")

# %%
# The kernel matrix and its eigenvalues.

figure, axes = plt.subplots(1, 2, figsize=(8.5, 3.4), layout="constrained")
GramDisplay.from_estimator(kernel, strings, y, ax=axes)
plt.show()
