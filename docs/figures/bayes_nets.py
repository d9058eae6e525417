"""Gram matrices of tables of records, and mean-field bounds of a grid of spins."""

import matplotlib.pyplot as plt
import numpy as np

from maxent.kernels import bayes_net_kernel
from maxent.models import BayesNet, MarkovRandomField

COLUMNS = [f"x{k}" for k in range(6)]


def population(groups):
    """Six columns; those of a group follow a hidden cause nine times out of ten."""
    factors = [(cause, [0.5, 0.5]) for cause in groups]
    for cause, columns in groups.items():
        factors += [((cause, x), [[0.9, 0.1], [0.1, 0.9]]) for x in columns]
    return BayesNet(factors, observed=COLUMNS)


rng = np.random.default_rng(0)
kinds = [
    population({"a": ["x0", "x1", "x2"], "b": ["x3", "x4", "x5"]}),
    population({"a": ["x0", "x3", "x4"], "b": ["x1", "x2", "x5"]}),
]
tables = [kinds[k].sample(40, rng) for k in np.repeat([0, 1], 20)]
structures = {
    "columns alone": {x: [] for x in COLUMNS},
    "one hidden cause": {"cause": [], **{x: ["cause"] for x in COLUMNS}},
}

fig, axes = plt.subplots(1, 3, figsize=(9.5, 3.3), layout="constrained")
for ax, (title, parents) in zip(axes, structures.items()):
    P = BayesNet.fit_many(
        tables,
        parents=parents,
        observed=COLUMNS,
        n_categories={name: 4 if name == "cause" else 2 for name in parents},
        smoothing=0.1,
        n_init=1,
        tol=1e-3,
        random_state=0,
    )
    image = ax.imshow(bayes_net_kernel(P, normalize=True), vmin=0.5, vmax=1.0)
    ax.set(title=title, xlabel="table of 40 records", xticks=[0, 20], yticks=[0, 20])
bar = fig.colorbar(image, ax=axes[:2], shrink=0.8)
bar.ax.set_title("kernel", fontsize="small")


def grid(coupling):
    """Spins on a 4 x 4 grid, each with a random preference."""
    noise = np.random.default_rng(1)
    at = [(i, j) for i in range(4) for j in range(4)]
    nodes = {f"{i}{j}": 0.3 * noise.normal(size=2) for i, j in at}
    agree = coupling * np.array([[1.0, -1.0], [-1.0, 1.0]])
    edges = {(f"{i}{j}", f"{i}{j + 1}"): agree for i, j in at if j < 3}
    edges |= {(f"{i}{j}", f"{i + 1}{j}"): agree for i, j in at if i < 3}
    return MarkovRandomField.pairwise(nodes, edges)


strengths = np.linspace(0.0, 1.0, 11)
rows = [[f"{i}{j}" for j in range(4)] for i in range(4)]
for label, clusters in (("spins alone", None), ("rows kept whole", rows)):
    gap = [
        field.log_partition()
        - field.log_partition(method="meanfield", clusters=clusters)
        for field in map(grid, strengths)
    ]
    axes[2].plot(strengths, gap, marker="o", label=label)
axes[2].set(
    title="mean field, 4 x 4 spins", xlabel="coupling", ylabel="log Z less bound, nats"
)
axes[2].legend(fontsize="small", frameon=False)
plt.show()
