"""
Four classes in one problem
===========================

Form and sex of crabs: four classes, one convex problem, one certificate.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from maxent import MEDClassifier
from maxent.datasets import load_crabs
from maxent.displays import MEDBoundaryDisplay

crabs = load_crabs()
sex = crabs.target_names[crabs.target]
y = np.array([f"{form} {s}" for form, s in zip(crabs.groups, sex)])

# %%
# Two coordinates for the picture. The machine itself takes any number of columns.

Z = LinearDiscriminantAnalysis(n_components=2).fit_transform(crabs.data, y)
model = MEDClassifier(kernel="linear", C=1, multi_class="joint").fit(Z, y)
print(f"training accuracy {model.score(Z, y):.3f}, gap {model.duality_gap_:.1e}")

display = MEDBoundaryDisplay.from_estimator(model, Z, y)
display.ax_.set(xlabel="first discriminant", ylabel="second discriminant")
plt.show()
