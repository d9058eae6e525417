"""
Train on the first months, test on the last
===========================================

Measurements come as one file a month and together would not fit into memory. The rows
become a Dask array with one block for each file; a fit visits the blocks and adds up
sums. Splits by time are slices of blocks, and nothing is read before a fit or a score
asks for it.
"""

import calendar
import tempfile
from pathlib import Path

import dask
import dask.array as da
import matplotlib.pyplot as plt
import numpy as np

from maxent import MEDClassifier

folder = tempfile.TemporaryDirectory()
rng = np.random.default_rng(0)
months, rows, columns = 12, 5_000, 10
truth = rng.normal(size=columns)
for month in range(months):  # what is to be predicted drifts in the second half-year
    drift = 0.35 * max(0, month - 6) * np.eye(columns)[0]
    X = rng.normal(size=(rows, columns))
    y = X @ (truth + drift) + rng.normal(0, 0.8, rows) > 0
    np.savez(Path(folder.name) / f"{month:02}.npz", X=X, y=y.astype(int))

# %%
# A delayed read for each file, and its shape, which is known without reading it.


def block(file, name, shape, dtype):
    """One array of a file, read when a worker needs it."""
    read = dask.delayed(lambda: np.load(file)[name])()
    return da.from_delayed(read, shape, dtype)


files = sorted(Path(folder.name).glob("*.npz"))
X = da.concatenate([block(file, "X", (rows, columns), float) for file in files])
y = da.concatenate([block(file, "y", (rows,), int) for file in files])
print(X)

# %%
# Six months to train on. The certificate is that of a fit in memory.

split = 6 * rows
model = MEDClassifier("linear", C=1).fit(X[:split], y[:split])
print(f"gap {model.duality_gap_:.2g} of an objective of {model.objective_:.4g}")
plain = MEDClassifier("linear", C=1).fit(*dask.compute(X[:split], y[:split]))
print(
    f"largest difference to a fit in memory: {abs(model.coef_ - plain.coef_).max():.1g}"
)

# %%
# Predictions are lazy, block by block: the errors of all months are one pass. The last
# months show that it is time to train again.

wrong = (model.predict(X) != y).reshape(months, rows).mean(axis=1).compute()
later = MEDClassifier("linear", C=1).fit(
    X[3 * rows : -2 * rows], y[3 * rows : -2 * rows]
)
again = (later.predict(X) != y).reshape(months, rows).mean(axis=1).compute()

figure, axes = plt.subplots(figsize=(7.2, 3.4), layout="constrained")
names = calendar.month_abbr[1:]
axes.axvspan(
    -0.4, 5.4, color="#35618f", alpha=0.12, lw=0, label="first training months"
)
axes.plot(wrong, "o-", color="#35618f", label="trained on January to June")
axes.plot(again, "s-", color="#c2571a", label="trained on April to October")
axes.set_xticks(range(months), names)
axes.set(ylabel="share of wrong predictions", title="error by month", ylim=(0, None))
axes.legend()
plt.show()
folder.cleanup()
