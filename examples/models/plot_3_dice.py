"""
When was the die loaded?
========================

Somebody throws a fair die, and at times one that shows a six in half of its throws.
Only the throws are seen. A hidden Markov model finds out how the second die is loaded,
how often the dice are swapped, and which throws are suspect.
"""

import matplotlib.pyplot as plt
import numpy as np

from maxent.models import CategoricalHMM

truth = CategoricalHMM(
    start=[1.0, 0.0],
    transition=[[0.95, 0.05], [0.10, 0.90]],
    emission=[[1 / 6] * 6, [0.1, 0.1, 0.1, 0.1, 0.1, 0.5]],
    alphabet="123456",
)
throws, dice = truth.sample(2, 10_000, random_state=3, return_states=True)
model = CategoricalHMM.fit(throws[:1], 2, alphabet="123456", random_state=0)
six = model.emission.prob[:, 5]
model = model.order_states(key=six)  # the loaded die last

# %%
# What was found out, beside what is true.

print("loaded die, found:", model.emission.prob[1].round(2).tolist())
print("loaded die, true: ", truth.emission.prob[1].round(2).tolist())
print("swaps, found:", model.transition[[0, 1], [1, 0]].round(3).tolist())
print("swaps, true: ", truth.transition[[0, 1], [1, 0]].round(3).tolist())

# %%
# Throws that the fit has not seen. The most likely path takes a side at every throw;
# the posterior says how sure that is. Beyond 0.9 and below 0.1 it is right in nineteen
# of twenty throws; most throws leave it open.

new = throws[1:]
path = model.viterbi(new)[0][0]
sure = model.posterior(new)[0][:, 1]
right = path == dice[1]
clear = np.abs(sure - 0.5) > 0.4
print(f"path right in {right.mean():.1%} of the throws")
print(f"where the posterior is clear: {((sure > 0.5) == dice[1])[clear].mean():.1%}")
print(f"which it is in {clear.mean():.1%} of the throws")

# %%
# Three hundred of them. A million throws are decoded in hundredths of a second.

at = np.arange(300)
fig, ax = plt.subplots(figsize=(9, 3))
ax.fill_between(at, dice[1][at], step="mid", color="0.85", label="loaded")
ax.plot(at, sure[at], label="posterior")
ax.step(at, 1.05 + 0.1 * path[at], where="mid", label="most likely path")
ax.set(xlabel="throw", ylabel="probability that the die is loaded")
ax.legend(loc="upper left", bbox_to_anchor=(1, 1))
fig.tight_layout()
plt.show()
