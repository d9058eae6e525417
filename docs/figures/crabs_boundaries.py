"""Sex of crabs on two coordinates: kernel machine, maximum likelihood, MED."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.svm import SVC

from maxent import MEDGaussianClassifier
from maxent.datasets import load_crabs
from maxent.displays import BoundaryComparisonDisplay

crabs = load_crabs()
rng = np.random.default_rng(0)
group = 2 * np.unique(crabs.groups, return_inverse=True)[1] + crabs.target
train = np.concatenate(
    [rng.choice(np.flatnonzero(group == g), size=20, replace=False) for g in range(4)]
)
# shape without size: the two widths in which the sexes differ, as shares of the length
carapace = crabs.data[:, 2]
Z = crabs.data[:, [1, 3]] / carapace[:, None]
Z = (Z - Z[train].mean(axis=0)) / Z[train].std(axis=0)
y = crabs.target_names[crabs.target]
models = {
    "SVM, quadratic kernel": SVC(kernel="poly", degree=2, coef0=1.0),
    "maximum likelihood": QuadraticDiscriminantAnalysis(),
    "MED": MEDGaussianClassifier(),
}
for model in models.values():
    model.fit(Z[train], y[train])
display = BoundaryComparisonDisplay.from_estimators(models, Z[train], y[train])
for ax in display.ax_:
    ax.set_xlabel("rear width / carapace length")
display.ax_[0].set_ylabel("carapace width / length")
plt.show()
