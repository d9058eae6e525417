"""
Learn from labels that may be wrong
===================================

Handwritten digits, even or odd, and one label in six is wrong. The labels become
probabilities, which the machine may overrule.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from maxent import MEDClassifier, MEDPartialLabelClassifier

X, digit = load_digits(return_X_y=True)
X, odd = X / 16.0, digit % 2
train, test = np.arange(900), np.arange(900, len(X))
rng = np.random.default_rng(0)
wrong = rng.random(900) < 1 / 6
given = np.where(wrong, 1 - odd[train], odd[train])

# %%
# Each label is right with a probability of 5/6; ``label_prior`` is that of class 1.

machine = MEDClassifier(gamma=0.1, C=10.0, bias=1.0)
model = MEDPartialLabelClassifier(machine)
model.fit(X[train], given, label_prior=np.where(given == 1, 5 / 6, 1 / 6))
plain = MEDClassifier(**machine.get_params()).fit(X[train], given)
print(f"labels given      {np.mean(given == odd[train]):.3f} right")
print(f"labels found      {np.mean(model.transduction_ == odd[train]):.3f} right")
print(f"new rows, plain   {plain.score(X[test], odd[test]):.3f} right")
print(f"new rows, doubted {model.score(X[test], odd[test]):.3f} right")

# %%
# The images whose label was overruled with the most confidence.

belief = np.where(given == 1, model.label_mean_, -model.label_mean_)
figure, axes = plt.subplots(2, 6, figsize=(8, 3.2), layout="constrained")
for ax, t in zip(axes.ravel(), np.argsort(belief)[:12], strict=True):
    ax.imshow(X[t].reshape(8, 8), cmap="gray_r", interpolation="nearest")
    ax.set(xticks=[], yticks=[], title=f"given {('even', 'odd')[given[t]]}")
    ax.title.set_fontsize("small")
plt.show()
