"""
Regression with wild targets
============================

Some targets are wrong by a factor of two. A loss that is linear far out ignores them, a
quadratic one follows them.
"""

import matplotlib.pyplot as plt
import numpy as np

from maxent import MEDRegressor
from maxent.datasets import load_crabs
from maxent.discrimination import ExponentialMargin, GaussianMargin

crabs = load_crabs()
female = crabs.target == 0
x, y = crabs.data[female, 2], crabs.data[female, 1].copy()
wild = np.arange(5, 100, 20)
y[wild] *= 2

# %%
# The line of each prior on the left, its loss on the right.

line = np.linspace(x.min(), x.max(), 50)
styles = {"exponential": ("-", "#0072b2"), "gaussian": ("--", "#d55e00")}
figure, (left, right) = plt.subplots(
    1, 2, figsize=(7.2, 3.2), width_ratios=[1.4, 1], layout="constrained"
)
left.scatter(x, y, s=9, c="0.5", linewidths=0)
left.scatter(x[wild], y[wild], s=26, marker="x", c="k", label="corrupted, doubled")
for margin, (style, colour) in styles.items():
    model = MEDRegressor("linear", C=1.0, epsilon=0.2, margin=margin)
    model.fit((x - x.mean())[:, None], y)
    predicted = model.predict((line - x.mean())[:, None])
    left.plot(line, predicted, ls=style, c=colour, label=margin)
left.set(xlabel="carapace length, mm", ylabel="rear width, mm")
left.legend()

r = np.linspace(-2, 2, 400)
for prior in (ExponentialMargin(10.0, level=-0.2), GaussianMargin(1.0, level=-0.2)):
    style, colour = styles[prior.name]
    loss = prior.unit_weight(1.0) * (prior.loss(r) + prior.loss(-r))
    right.plot(r, loss, ls=style, c=colour, label=prior.name)
right.set(xlabel="residual, mm", ylabel="loss, C = 1, epsilon = 0.2")
plt.show()
