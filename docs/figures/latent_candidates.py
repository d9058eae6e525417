"""Candidates of a mixture: entropy against likelihood, chosen ones marked."""

import matplotlib.pyplot as plt
import numpy as np

from maxent import LMEGaussianMixture

rng = np.random.default_rng(0)
means = np.array([[0.0, -3.0], [0.0, 0.0], [0.0, 3.0]])
X = means[rng.integers(3, size=50)] + rng.normal(size=(50, 2)) * [np.sqrt(2), 1]
model = LMEGaussianMixture(3, n_init=200, random_state=0).fit(X)
other = model.select("likelihood")
table = model.candidates_
ok = table["reason"] == ""
finite = np.isfinite(table["entropy"])

figure, ax = plt.subplots(figsize=(5.2, 3.4), layout="constrained")
L, H = table["log_likelihood"], table["entropy"]
ax.plot(L[ok], H[ok], "o", ms=4, c="0.6", label="admitted")
if (~ok & finite).any():
    ax.plot(L[~ok & finite], H[~ok & finite], "x", c="0.3", label="rejected")
ax.plot(model.log_likelihood_, model.entropy_, "s", c="#d55e00", label="entropy")
ax.plot(other.log_likelihood_, other.entropy_, "D", c="#0072b2", label="likelihood")
ax.set(xlabel="log-likelihood per row", ylabel="joint entropy")
ax.legend(loc="best", fontsize="small")
plt.show()
