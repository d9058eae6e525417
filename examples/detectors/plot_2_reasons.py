"""
Why is this row unusual?
========================

A detector that only says "unusual" sends somebody to look at five columns. Here it also
says by which of them: readings of a pump rise and fall together, and each fault breaks
another bond between them, though no single reading is out of its range.
"""

import matplotlib.pyplot as plt
import numpy as np

from maxent import MEDOutlierDetector

names = ["load", "speed", "power", "flow", "heat"]
rng = np.random.default_rng(3)


def readings(n):
    """Readings of a pump at work: all follow its load."""
    load = rng.uniform(20, 90, n)
    speed = 600 + 12 * load + rng.normal(0, 25, n)
    power = 0.8 + 0.045 * load + rng.normal(0, 0.12, n)
    flow = 3 + 0.11 * speed / 12 + rng.normal(0, 0.4, n)
    heat = 25 + 7 * power + rng.normal(0, 1.2, n)
    return np.column_stack([load, speed, power, flow, heat])


faults = readings(3)
faults[:] = np.median(readings(999), axis=0)  # an ordinary hour, but for
faults[0, 3] = 11.5  # a leak: too little flow for this speed
faults[1, 4] = 56.0  # a worn bearing: too hot for this power
faults[2, [1, 3]] = 1600.0, 17.7  # a slipping belt: too fast for this load
told = ["leak", "worn bearing", "slipping belt"]

# %%
# The detector learns from hours of normal work alone. A threshold follows from the
# share of them that may be called unusual.

train = readings(400)
detector = MEDOutlierDetector(contamination=0.01).fit(train)
print("found:", *detector.predict(faults), "  (-1 is unusual)")
print(
    "false alarms in 1000 normal hours:", (detector.predict(readings(1000)) < 0).sum()
)

# %%
# Each column is within what was seen before, so that limits on single readings find
# nothing. ``feature_scores`` shares the score of a row out to its columns, in nats: a
# column far below zero does not fit the others.

within = (faults >= train.min(axis=0)) & (faults <= train.max(axis=0))
print("readings within the range of training:", within.sum(), "of", within.size)
shares = detector.feature_scores(faults)

figure, axes = plt.subplots(1, 2, figsize=(8.6, 3.6), layout="constrained")
axes[0].plot(train[:, 1], train[:, 3], ".", color="0.7", ms=4, label="normal hours")
for row, name, marker in zip(faults, told, "osD"):
    axes[0].plot(row[1], row[3], marker, ms=8, label=name)
axes[0].set(
    xlabel="speed", ylabel="flow", title="two of five columns: only the leak shows"
)
axes[0].legend()
place = np.arange(len(names))
for i, (row, name) in enumerate(zip(shares, told)):
    axes[1].barh(place + 0.27 * (i - 1), row, height=0.25, label=name)
axes[1].set_yticks(place, names)
axes[1].invert_yaxis()
axes[1].axvline(0, color="0.3", lw=0.8)
axes[1].set(xlabel="share of the score, nats", title="what each column says")
plt.show()
