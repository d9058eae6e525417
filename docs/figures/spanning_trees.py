"""Edge probabilities beside the best tree, and their errors when weights are wide."""

import matplotlib.pyplot as plt
import numpy as np

from maxent.discrimination import chow_liu_tree, spanning_tree_log_partition

fig, (left, right) = plt.subplots(1, 2, figsize=(8.5, 4), layout="constrained")

# a chain of eight columns, each a noisy copy of the one before; few rows
rng = np.random.default_rng(0)
n, rows = 8, 40
X = rng.integers(0, 2, (rows, n))
for v in range(1, n):
    X[:, v] = np.where(rng.random(rows) < 0.5, X[:, v - 1], X[:, v])
tree, information = chow_liu_tree(X, return_information=True)
log_weights = rows * information
np.fill_diagonal(log_weights, -np.inf)
_, p = spanning_tree_log_partition(log_weights, marginals=True)
angle = 2 * np.pi * np.arange(n) / n
x, y = np.sin(angle), np.cos(angle)
best = {tuple(edge) for edge in tree.tolist()}
for u in range(n):
    for v in range(u + 1, n):
        colour = "C1" if (u, v) in best else "C0"
        left.plot(x[[u, v]], y[[u, v]], color=colour, lw=6 * p[u, v], zorder=1)
left.scatter(x, y, s=260, color="white", edgecolor="0.3", zorder=2)
for v in range(n):
    left.annotate(str(v), (x[v], y[v]), ha="center", va="center")
left.plot([], [], color="C1", lw=3, label="in the Chow-Liu tree")
left.plot([], [], color="C0", lw=3, label="not in it")
left.legend(loc="upper left", fontsize="small", frameon=False)
left.set(aspect="equal", xlim=(-1.35, 1.35), ylim=(-1.2, 1.6))
left.axis("off")
left.set_title("Probability of an edge: width of its line")


def by_inverse(W):
    """The textbook: W_uv (G_uu + G_vv - 2 G_uv)."""
    G = np.zeros_like(W)
    try:
        G[1:, 1:] = np.linalg.inv((np.diag(W.sum(axis=0)) - W)[1:, 1:])
    except np.linalg.LinAlgError:  # not a digit left: an error of one
        return np.zeros_like(W)
    g = np.diag(G)
    return W * (g[:, None] + g - 2 * G)


# weights d_u d_v have the probabilities (d_u + d_v) / sum d
spreads = np.linspace(0, 30, 31)
errors = {"star-mesh elimination": [], "inverse of the Laplacian": []}
off = ~np.eye(20, dtype=bool)
for spread in spreads:
    seen = {name: [] for name in errors}
    for _ in range(15):
        log_d = spread * np.log(10) * rng.uniform(0, 1, 20)
        d = np.exp(log_d)
        exact = (d[:, None] + d) / d.sum()
        log_weights = log_d[:, None] + log_d
        np.fill_diagonal(log_weights, -np.inf)
        _, p = spanning_tree_log_partition(log_weights, marginals=True)
        for name, found in zip(errors, (p, by_inverse(np.exp(log_weights)))):
            seen[name].append(np.abs(found / exact - 1)[off].max())
    for name in errors:
        errors[name].append(np.median(seen[name]))
for name, error in errors.items():
    right.semilogy(spreads, error, ".-", label=name)
right.axhline(1.0, color="0.7", lw=0.8)
right.set(
    xlabel="decades between the least and the largest factor",
    ylabel="relative error of the worst probability",
    title="Digits when weights are wide",
)
right.legend(fontsize="small")
plt.show()
