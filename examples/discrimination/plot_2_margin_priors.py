"""
Choose a margin prior
=====================

The prior over margins decides the loss. Cross-validated errors against C on two data
sets say how much that matters: at its best C, hardly.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxent import MEDClassifier
from maxent.datasets import load_breast_cancer_wisconsin, load_crabs

# %%
# Four priors: a smooth hinge, a squared hinge, the logistic loss, and the hinge itself.

C = 10.0 ** np.arange(-1, 4)
folds = StratifiedKFold(n_splits=5, shuffle=True, random_state=0)
priors = [
    ("exponential", "-", "#0072b2"),
    ("gaussian", "--", "#d55e00"),
    ("logistic", "-.", "#009e73"),
    ("hinge", ":", "0.4"),
]


def errors(X, y, **parameters):
    """Error of every fold, in per cent."""
    machine = make_pipeline(StandardScaler(), MEDClassifier(**parameters))
    return 100 * (1 - cross_val_score(machine, X, y, cv=folds))


# %%
# Bars are standard errors of the mean over the folds.

figure, both = plt.subplots(1, 2, figsize=(7.6, 3.1), layout="constrained")
for axes, load in zip(both, (load_crabs, load_breast_cancer_wisconsin)):
    X, y = load(return_X_y=True)
    for k, (margin, style, colour) in enumerate(priors):
        error = [errors(X, y, C=c, margin=margin) for c in C]
        axes.errorbar(
            C * 1.06 ** (k - 1.5),  # side by side
            np.mean(error, axis=1),
            np.std(error, axis=1, ddof=1) / np.sqrt(folds.get_n_splits()),
            ls=style,
            c=colour,
            lw=1.2,
            label=margin,
        )
    axes.set(xscale="log", xlabel="C")
both[0].set(title="crabs, sex", ylabel="error, %", ylim=(0, 25))
both[1].set(title="Wisconsin breast cancer", ylim=(0, 8))
figure.legend(*both[0].get_legend_handles_labels(), ncols=4, loc="outside upper center")
plt.show()
