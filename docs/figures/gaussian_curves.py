"""ROC curves of test rows: Gaussians by likelihood and by MED, a linear machine."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from maxent import MEDGaussianClassifier
from maxent.datasets import load_breast_cancer_wisconsin, load_crabs
from maxent.displays import ROCComparisonDisplay

rng = np.random.default_rng(0)
crabs = load_crabs()
group = 2 * np.unique(crabs.groups, return_inverse=True)[1] + crabs.target
few = np.zeros(200, dtype=bool)
for g in range(4):
    few[rng.choice(np.flatnonzero(group == g), size=20, replace=False)] = True
cancer = load_breast_cancer_wisconsin()  # complete rows of the first date
first = cancer.groups == 1
X, y = cancer.data[first], cancer.target[first]
half = np.zeros(len(y), dtype=bool)
half[rng.permutation(len(y))[:200]] = True
sets = {
    "crabs, 120 test rows": (crabs.data, crabs.target, few),
    f"breast cancer, {(~half).sum()} test rows": (X, y, half),
}
figure, axes = plt.subplots(1, 2, figsize=(8.6, 4.2))
for ax, (title, (X, y, train)) in zip(axes, sets.items(), strict=True):
    models = {
        "maximum likelihood": QuadraticDiscriminantAnalysis(),
        "MED": MEDGaussianClassifier(),
        "SVM, linear": make_pipeline(StandardScaler(), SVC(kernel="linear")),
    }
    for model in models.values():
        model.fit(X[train], y[train])
    ROCComparisonDisplay.from_estimators(
        models, X[~train], y[~train], ax=ax, max_false_positive=0.3
    )
    ax.set_title(title)
plt.show()
