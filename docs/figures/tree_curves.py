"""Trees on categorical scores: ROC curves, and edge weights beside informations."""

import matplotlib.pyplot as plt
import numpy as np

from maxent import ChowLiuClassifier, MEDTreeClassifier
from maxent.datasets import load_breast_cancer_wisconsin
from maxent.displays import EdgeWeightsDisplay, ROCComparisonDisplay

data = load_breast_cancer_wisconsin()
codes = np.minimum((data.data.astype(int) - 1) // 2, 4)  # five levels of each score
order = np.random.default_rng(0).permutation(len(codes))
train, test = order[:200], order[200:]
y = data.target
models = {
    "Chow-Liu trees": ChowLiuClassifier(class_prior="uniform"),
    "MED trees": MEDTreeClassifier(C=1.0, level=4.0, bias=None),
}
for model in models.values():
    model.fit(codes[train], y[train])
chow_liu, trees = models.values()
figure, axes = plt.subplots(1, 3, figsize=(12, 4.6))
ROCComparisonDisplay.from_estimators(
    models, codes[test], y[test], ax=axes[0], max_false_positive=0.3
)
axes[0].set_title(f"{len(test)} test rows")
for k, name in enumerate(data.target_names):
    EdgeWeightsDisplay(
        trees.edge_log_weights_[k], chow_liu.information_[k], title=f"{name} cases"
    ).plot(axes[k + 1])
plt.show()
