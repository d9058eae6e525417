"""Means of ten unknown labels: of the joint problem, and factorised."""

import matplotlib.pyplot as plt
import numpy as np

from maxent import MEDClassifier, MEDPartialLabelClassifier

rng = np.random.default_rng(0)
X = np.concatenate([rng.normal(-1, 1, (10, 2)), rng.normal(1, 1, (10, 2))])
part = np.repeat([0, 1], 10)
part[5:15] = -1
machine = MEDClassifier(gamma=0.5, bias=1.0)
figure, axes = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
place = np.arange(10)
for method, shift, colour in (("exact", -0.2, "#0072b2"), ("alternating", 0.2, "0.6")):
    model = MEDPartialLabelClassifier(machine, method=method).fit(X, part)
    text = f"{method}, objective {model.objective_:.2f}"
    axes.bar(place + shift, model.label_mean_[5:15], 0.4, color=colour, label=text)
axes.axhline(0, c="k", lw=0.8)
axes.set(xlabel="row without a label", ylabel="label mean", ylim=(-1.05, 1.05))
axes.set_xticks(place)
axes.legend()
plt.show()
