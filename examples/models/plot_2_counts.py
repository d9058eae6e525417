"""
Calm and busy years
===================

How many earthquakes of magnitude 7 and more there were in each year of a century, and
whether some years belong together: a hidden Markov model of counts. The number of its
states is chosen, the years are sorted into them, and the years to come are forecast.
"""

import matplotlib.pyplot as plt
import numpy as np

from maxent.families import Poisson
from maxent.models import HiddenMarkovModel, select

# of the years 1900 to 2006 (U.S. Geological Survey; Zucchini & MacDonald 2009)
numbers = """
    13 14  8 10 16 26 32 27 18 32 36 24 22 23 22 18 25 21 21 14  8 11 14 23 18 17 19
    20 22 19 13 26 13 14 22 24 21 22 26 21 23 24 27 41 31 27 35 26 28 36 39 21 17 22
    17 19 15 34 10 15 22 18 15 20 15 22 19 16 30 27 29 23 20 16 21 21 25 16 18 15 18
    14 10 15  8 15  6 11  8  7 18 16 13 12 13 20 15 16 12 18 15 16 13 15 16 11 11
"""
counts = np.array(numbers.split(), dtype=float)
years = np.arange(1900, 1900 + len(counts))

# %%
# Counts of one law vary as much as their mean is; these vary more, so there are several
# laws, or the years depend on each other.

print(f"mean {counts.mean():.1f}, variance {counts.var():.1f}")

# %%
# From one to four states, the best of ten starts of each. BIC takes two or three, which
# are nearly as good.

result = select(
    HiddenMarkovModel,
    [counts],
    range(1, 5),
    family=Poisson,
    n_init=10,
    random_state=0,
)
for n, bic in zip(result.table["n"], result.table["bic"], strict=True):
    print(f"{n} states: BIC {bic:.1f}")
model = result.best.order_states()
print("earthquakes a year:", model.emission.rate.round(1).tolist())
print(
    "years that a state lasts:", (1 / (1 - np.diag(model.transition))).round().tolist()
)

# %%
# The most likely states of all years, and what the model expects of the next ten, with
# the intervals that hold nine of ten years.

path = model.viterbi([counts])[0][0]
ahead = model.forecast([counts], 10, level=0.9, random_state=0)[0]
next_years = years[-1] + 1 + np.arange(10)
fig, ax = plt.subplots(figsize=(9, 3.5))
ax.plot(years, counts, ".", color="0.4", label="counted")
ax.step(years, model.emission.rate[path], where="mid", label="mean of the state")
ax.plot(next_years, ahead.mean.ravel(), color="C1", label="expected")
ax.fill_between(
    next_years, ahead.lower.ravel(), ahead.upper.ravel(), color="C1", alpha=0.25
)
ax.set(xlabel="year", ylabel="earthquakes", ylim=(0, 52))
ax.legend(ncols=3)
fig.tight_layout()
plt.show()

# %%
# The law of a year whose state is not known, beside the counts.

share = model.posterior([counts])[0].mean(axis=0)
k = np.arange(46)
law = share @ np.exp(model.emission.log_prob(k))
fig, ax = plt.subplots(figsize=(6, 3))
ax.hist(counts, bins=np.arange(-0.5, 46, 3), density=True, color="0.8")
ax.plot(k, law, label=f"{model.n_states} states")
ax.plot(k, np.exp(Poisson(counts.mean()).log_prob(k)), "--", label="one state")
ax.set(xlabel="earthquakes a year", ylabel="share of the years")
ax.legend()
fig.tight_layout()
plt.show()
