"""
Groups in rows that stay on disk
================================

A mixture of Gaussians fitted to rows that no process holds whole: EM takes one pass
over the blocks for each step, and only the sums of each group travel. The result has
the same bits on any number of workers.
"""

import tempfile
from pathlib import Path

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np

from maxent import RowBlocks
from maxent.models import Mixture

folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "rows.npy"
rng = np.random.default_rng(4)
centres = np.array([[0.0, 0.0], [4.0, 1.0], [1.5, 4.0]])
shapes = np.array(
    [[[1, 0.6], [0.6, 1]], [[0.5, -0.2], [-0.2, 0.8]], [[1.5, 0], [0, 0.2]]]
)
group = rng.choice(3, 60_000, p=[0.5, 0.3, 0.2])
factors = np.linalg.cholesky(shapes)
noise = rng.normal(size=(60_000, 2))
np.save(path, centres[group] + np.einsum("nij,nj->ni", factors[group], noise))

# %%
# The same file in blocks of rows, with Dask and without it. Dask sends the blocks to
# the workers of whatever client is active, here to threads of this process.

rows = np.load(path, mmap_mode="r")
options = dict(n_components=3, tol=1e-6, random_state=0)
by_dask = Mixture.fit(da.from_array(rows, chunks=(5_000, 2)), **options)
by_file = Mixture.fit(RowBlocks(path, block_rows=5_000), **options)
print("the same bits:", by_dask == by_file)
print("shares of the groups:", *np.sort(by_dask.weights)[::-1].round(3))

# %%
# The density, and how the sum over all rows depends on the number of groups: blocks are
# read once more for each score, and three groups are enough.

figure, axes = plt.subplots(1, 2, figsize=(8.6, 3.6), layout="constrained")
few = rows[rng.choice(len(rows), 1500, replace=False)]
grid = np.stack(np.meshgrid(np.linspace(-4, 7, 120), np.linspace(-4, 6, 120)), axis=-1)
log_density = by_dask.log_prob(grid.reshape(-1, 2)).reshape(120, 120)
axes[0].plot(*few.T, ".", color="0.75", ms=2)
axes[0].contour(
    *np.moveaxis(grid, -1, 0), log_density, levels=np.arange(-9, 0), cmap="viridis"
)
axes[0].plot(
    *by_dask.components.mean.T, "o", color="#b3261e", label="centres of groups"
)
axes[0].set(
    xlabel="first column", ylabel="second column", title="density of 60,000 rows"
)
axes[0].legend(loc="lower right")
counts = range(1, 6)
half = da.from_array(rows[::2], chunks=(5_000, 2))
other = rows[1::2]
mean = [
    Mixture.fit(half, **{**options, "n_components": k}).log_prob(other).mean()
    for k in counts
]
axes[1].plot(counts, mean, "o-", color="#35618f")
axes[1].set(
    xlabel="number of groups",
    ylabel="log density, mean of other rows",
    title="fitted to one half, judged on the other",
    xticks=counts,
)
plt.show()
del rows, few, half, other
folder.cleanup()
