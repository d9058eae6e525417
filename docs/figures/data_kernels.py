"""Four kernels of the same strings, sorted by class."""

import matplotlib.pyplot as plt
import numpy as np

from maxent.kernels import (
    FisherScores,
    fisher_kernel,
    marginalized_kernel,
    spectrum_kernel,
)
from maxent.models import CategoricalHMM

laws = [
    CategoricalHMM(
        [0.5, 0.5],
        [[stay, 1 - stay], [1 - stay, stay]],
        [[0.4, 0.1, 0.1, 0.4], [0.1, 0.4, 0.4, 0.1]],
        alphabet="ACGT",
    )
    for stay in (0.95, 0.5)
]
strings = [x for law in laws for x in law.sample(30, 120, random_state=0)]
model = CategoricalHMM.fit(strings, 2, alphabet="ACGT", random_state=0)
fisher = fisher_kernel(FisherScores(model).transform(strings), ridge=0.01)
size = np.sqrt(np.diagonal(fisher))
kernels = {
    "words of one letter": spectrum_kernel(
        strings, k=1, alphabet="ACGT", normalize=True
    ),
    "words of three letters": spectrum_kernel(
        strings, k=3, alphabet="ACGT", normalize=True
    ),
    "marginalised, order 2": marginalized_kernel(
        strings, model=model, order=2, normalize=True
    ),
    "Fisher scores": fisher / np.outer(size, size),
}

fig, axes = plt.subplots(1, 4, figsize=(10, 3), layout="constrained")
for ax, (name, K) in zip(axes, kernels.items()):
    off = K[~np.eye(len(K), dtype=bool)]
    picture = ax.imshow(K, vmin=off.min(), vmax=off.max(), interpolation="nearest")
    bar = fig.colorbar(picture, ax=ax, shrink=0.8, orientation="horizontal")
    bar.set_label("kernel")
    ax.set(title=name, xlabel="strings by class", xticks=[15, 45], yticks=[])
    ax.set_xticklabels(["blocks", "mixed"])
plt.show()
