"""A kernel machine on two coordinates of the crabs: boundary, margins, multipliers."""

import matplotlib.pyplot as plt
import numpy as np

from maxent import MEDClassifier
from maxent.datasets import load_crabs
from maxent.displays import MEDBoundaryDisplay

crabs = load_crabs()
sex = crabs.target_names[crabs.target]
X = (crabs.data - crabs.data.mean(axis=0)) / crabs.data.std(axis=0)
# the second and third principal coordinates: shape, with the size taken out
Z = X @ np.linalg.svd(X, full_matrices=False)[2][1:3].T
Z /= Z.std(axis=0)
model = MEDClassifier(kernel="rbf", C=10, gamma=0.5).fit(Z, sex)
display = MEDBoundaryDisplay.from_estimator(model, Z, sex)
display.ax_.set(
    xlabel="second principal coordinate", ylabel="third principal coordinate"
)
plt.show()
