"""
Classify rows of numbers
========================

A kernel machine tells male from female crabs. The fit comes with a bound of its
distance to the optimum, and the picture shows which rows the boundary rests on.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import cross_val_score

from maxent import MEDClassifier
from maxent.datasets import load_crabs
from maxent.displays import MEDBoundaryDisplay

# %%
# Five lengths of 200 crabs. Most of their variation is size; the second and third
# principal coordinates are shape, with the size taken out.

crabs = load_crabs()
sex = crabs.target_names[crabs.target]
X = (crabs.data - crabs.data.mean(axis=0)) / crabs.data.std(axis=0)
Z = X @ np.linalg.svd(X, full_matrices=False)[2][1:3].T
Z /= Z.std(axis=0)

# %%
# Fit, and read the certificate: the objective is at most ``duality_gap_`` from the
# optimum.

model = MEDClassifier(kernel="rbf", C=10, gamma=0.5).fit(Z, sex)
print(f"accuracy, 5 folds: {cross_val_score(model, Z, sex, cv=5).mean():.3f}")
print(f"objective {model.objective_:.3f}, duality gap {model.duality_gap_:.1e}")
print(f"{len(model.support_)} of {len(Z)} rows have a multiplier")

# %%
# The boundary (solid), the margins (dashed), and the multipliers by the size of a row.

display = MEDBoundaryDisplay.from_estimator(model, Z, sex)
display.ax_.set(
    xlabel="second principal coordinate", ylabel="third principal coordinate"
)
plt.show()
