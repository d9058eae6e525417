"""
Find a motif
============

Sequences of one class hold a motif somewhere. The classifier learns the motif without
having been told where it is, and says where it sees it.
"""

import matplotlib.pyplot as plt
import numpy as np

from maxent import M3EMotifClassifier
from maxent.datasets import make_planted_motifs
from maxent.displays import MotifLogoDisplay

X, y, motif, places = make_planted_motifs(600, 24, 8, information=1.8, random_state=1)
train = np.arange(len(y)) < 400
X_train = [x for x, kept in zip(X, train) if kept]
X_test = [x for x, kept in zip(X, train) if not kept]

# %%
# A large ``alpha`` puts the evidence at one place, a small one spreads it over all.

model = M3EMotifClassifier(8, alpha=8.0, C=80.0, init="path", tol=1e-2)
model.fit(X_train, y[train])
print(f"test accuracy {np.mean(model.predict(X_test) == y[~train]):.3f}")

# %%
# Weights of the letters by place in the motif, and where the motif begins.

figure, axes = plt.subplots(2, 1, figsize=(8, 4.4), layout="constrained")
MotifLogoDisplay.from_estimator(model, X_train, y[train], ax=axes)
plt.show()
