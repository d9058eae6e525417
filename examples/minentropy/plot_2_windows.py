"""
Find a window in images
=======================

A small cross, bright or dark, sits somewhere in a noisy image. The label says which of
both, not where.
"""

import matplotlib.pyplot as plt
import numpy as np

from maxent import M3EGridClassifier
from maxent.displays import HiddenPositionDisplay

rng = np.random.default_rng(0)
images = 0.5 * rng.standard_normal((160, 8, 8))
label, corner = np.arange(160) % 2, rng.integers(6, size=(160, 2))
cross = np.array([[2.0, -1.0, 2.0], [-1.0, 2.0, -1.0], [2.0, -1.0, 2.0]])
for image, (row, column), sign in zip(images, corner, 2 * label - 1):
    image[row : row + 3, column : column + 3] += sign * cross

# %%
# Half of the images train a classifier whose evidence is one window of 3 x 3 pixels.

model = M3EGridClassifier((3, 3), alpha=8.0, C=40.0, mode="blocks", init="path")
model.fit(images[:80], label[:80])
print(f"test accuracy {np.mean(model.predict(images[80:]) == label[80:]):.3f}")

# %%
# Windows that it finds in new images (solid), and the true ones (dashed).

HiddenPositionDisplay.from_estimator(
    model,
    images[80:86],
    images[80:86],
    boxes=np.column_stack([corner[80:86], np.full((6, 2), 3)]),
)
plt.show()
