"""
Days that went differently
==========================

Somebody lives alone, and a sensor says every half hour where they are. Which days were
unlike the others? Nobody has marked any. What matters is the order of a day, not how
often each room was used: a night of walking about may hold the usual hours of sleep.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch

from maxent import MEDSequenceOutlierDetector

rooms = ["bed", "bath", "kitchen", "living room", "out"]
rng = np.random.default_rng(1)


def stretch(*parts):
    """Half hours of (room, hours), each length a little different every day."""
    lengths = [max(1, round(2 * hours + rng.normal(0, 0.7))) for _, hours in parts]
    return np.repeat([rooms.index(room) for room, _ in parts], lengths)[:48]


def usual_day():
    return stretch(
        *(("bed", 6.5), ("bath", 0.5), ("kitchen", 1), ("living room", 2)),
        *(("out", rng.choice([2, 4])), ("kitchen", 1), ("living room", 2)),
        *(("out", 1), ("kitchen", 1), ("living room", 3), ("bath", 0.5), ("bed", 4)),
    )


restless = stretch(
    *[("bed", 1), ("living room", 0.5), ("kitchen", 0.5)] * 4,
    *[("living room", 2), ("kitchen", 1), ("out", 3)] * 3,
)
ill = stretch(*[("bed", 1), ("bath", 0.5)] * 14, ("kitchen", 0.5), ("bed", 4))
searching = stretch(
    ("bed", 7),
    ("bath", 0.5),
    ("kitchen", 1),
    *[("out", 0.5), ("living room", 0.5), ("bed", 0.5)] * 9,
    ("living room", 2),
    ("bed", 3),
)
days = [usual_day() for _ in range(60)]
strange = {
    12: ("awake at night", restless),
    31: ("ill", ill),
    47: ("confused", searching),
}
for place, (_, day) in strange.items():
    days.insert(place, day)

# %%
# A hidden Markov model of three states, trained so that the usual days reach the level
# of most; the three strange days are among its training data.

detector = MEDSequenceOutlierDetector(3, n_symbols=5, quantile=0.2, random_state=0)
detector.fit(days)
score = detector.score_samples(days)
lowest = np.argsort(score)[:3]
print("lowest scores:", *(f"day {k} ({score[k]:.2f})" for k in lowest))
print("next one:", f"{np.sort(score)[3]:.2f}")

# %%
# The days as rows of colours, with their scores beside them.

colours = ["#35618f", "#8dd0c5", "#e9a23b", "#c9c3b1", "#7a3b69"]
table = np.full((len(days), max(map(len, days))), np.nan)
for row, day in zip(table, days):
    row[: len(day)] = day
figure, axes = plt.subplots(
    1, 2, figsize=(8.6, 5), width_ratios=[3, 1], sharey=True, layout="constrained"
)
axes[0].imshow(
    table, cmap=ListedColormap(colours), aspect="auto", extent=(0, 24, 63, 0)
)
axes[0].set(xlabel="hour of the day", ylabel="day", xticks=range(0, 25, 4))
handles = [Patch(color=colour, label=room) for colour, room in zip(colours, rooms)]
figure.legend(handles=handles, loc="outside upper left", ncols=5)
middle = np.arange(len(days)) + 0.5
axes[1].plot(score, middle, "o", color="0.6", ms=4)
axes[1].plot(score[lowest], middle[lowest], "o", color="#b3261e", ms=6)
for place, (name, _) in strange.items():
    axes[1].annotate(name, (score[place] + 0.05, place + 0.5), va="center")
axes[1].set(xlabel="score")
plt.show()
