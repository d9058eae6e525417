"""
A table read in pieces
======================

A CSV file of customers, larger than it is here, is read in pieces of some thousand
rows. Text becomes columns of zeros and ones with categories that are named beforehand,
because no piece alone has seen all. Then rows are split at random into those to train
on and those to test on, without moving any between blocks.
"""

import tempfile
from pathlib import Path

import dask
import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.metrics import RocCurveDisplay

from maxent.latent import MaxEntClassifier

folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "customers.csv"
rng = np.random.default_rng(0)
n = 20_000
plans = ["basic", "family", "business"]
frame = pd.DataFrame(
    {
        "plan": rng.choice(plans, n, p=[0.6, 0.3, 0.1]),
        "months": rng.integers(1, 60, n),
        "calls": rng.poisson(2, n),
        "bill": rng.gamma(4, 8, n).round(2),
    }
)
log_odds = 0.5 * frame.calls - 0.05 * frame.months + 0.02 * frame.bill - 1.4
log_odds += frame.plan.map({"basic": 0, "family": -0.9, "business": 0.6})
frame["left"] = (rng.random(n) < 1 / (1 + np.exp(-log_odds))).astype(int)
frame.to_csv(path, index=False)

# %%
# The starts of the pieces are counted once; then each piece is a delayed frame. Of a
# ``dask.dataframe``, ``df.to_dask_array(lengths=True)`` gives what is made by hand
# here.

piece = 4_000
names = ["months", "calls", "bill", *plans]


def numbers(start):
    """Columns of one piece: numbers, and zeros and ones for the plan."""
    own = pd.read_csv(path, skiprows=range(1, start + 1), nrows=piece)
    plan = own.plan.to_numpy()[:, None] == np.array(plans)
    return np.column_stack([own[["months", "calls", "bill"]], plan, own.left])


starts = range(0, n, piece)
blocks = [
    da.from_delayed(dask.delayed(numbers)(start), (piece, len(names) + 1), float)
    for start in starts
]
table = da.concatenate(
    blocks
).persist()  # read once; leave `persist` out if it is too much
X, y = table[:, :-1], table[:, -1].astype(int)

# %%
# The split: one random number for each row, drawn block by block from a seed. A mask of
# zero weights keeps the blocks as they are; rows of weight zero do not count in the
# fit.

train = da.random.default_rng(0).random(n, chunks=piece) < 0.75
scale = X.std(axis=0).compute()
model = MaxEntClassifier(C=1.0).fit(X / scale, y, sample_weight=train.astype(float))
probability, left, trained = dask.compute(
    model.predict_proba(X / scale)[:, 1], y, train
)
print(f"trained on {trained.sum()} rows, tested on {(~trained).sum()}")

# %%
# What drives customers away, in standard deviations of the columns, and how well the
# rows that the fit has not seen are told apart.

figure, axes = plt.subplots(1, 2, figsize=(8.6, 3.6), layout="constrained")
weight = np.ravel(model.coef_)[-len(names) :]
axes[0].barh(names, weight, color=np.where(weight > 0, "#c2571a", "#35618f"))
axes[0].axvline(0, color="0.3", lw=0.8)
axes[0].invert_yaxis()
axes[0].set(xlabel="weight, stays or leaves", title="what drives customers away")
for rows, name in ((trained, "training rows"), (~trained, "test rows")):
    RocCurveDisplay.from_predictions(
        left[rows], probability[rows], ax=axes[1], name=name
    )
axes[1].set(
    title="who will leave",
    xlabel="share of those who stay, warned of",
    ylabel="share of leavers found",
)
plt.show()
folder.cleanup()
