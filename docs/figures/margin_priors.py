"""Losses that margin priors imply, and the potentials behind them."""

import matplotlib.pyplot as plt
import numpy as np

from maxent.discrimination import (
    ErlangMargin,
    ExponentialMargin,
    GaussianMargin,
    HingeMargin,
    LaplaceMargin,
    LogisticMargin,
)

priors = [
    (ExponentialMargin(10.0), "-", "#0072b2"),
    (LaplaceMargin(10.0), "--", "#d55e00"),
    (ErlangMargin(2, 10.0), "-.", "#009e73"),
    (GaussianMargin(1.0), ":", "#cc79a7"),
    (LogisticMargin(1.0), (0, (5, 1, 1, 1, 1, 1)), "#e69f00"),
    (HingeMargin(), "-", "0.6"),
]
m = np.linspace(-1.5, 2.0, 400)
figure, (left, right) = plt.subplots(1, 2)
for prior, style, colour in priors:
    weight = prior.unit_weight(1.0)  # C = 1
    left.plot(m, weight * prior.loss(m), ls=style, c=colour, label=prior.name)
    u = np.linspace(0, 1.2 if np.isinf(prior.upper) else 1, 400)[:-1]
    lam = u * (1 if np.isinf(prior.upper) else prior.upper * weight)
    right.plot(lam, weight * prior.potential(lam / weight), ls=style, c=colour)
left.axvline(1, c="0.85", lw=0.8, zorder=0)
left.set(xlabel="margin m = y f(x)", ylabel="loss", ylim=(-0.05, 2.6))
right.set(xlabel="multiplier λ", ylabel="potential φ(λ)", ylim=(0, 1.05))
figure.legend(*left.get_legend_handles_labels(), ncols=6, loc="outside upper center")
plt.show()
