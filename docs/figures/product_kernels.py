"""A kernel matrix of strings with its spectrum, and kernels over horizons."""

import matplotlib.pyplot as plt
import numpy as np

from maxent.displays import GramDisplay, HorizonDisplay
from maxent.kernels import ProductKernel
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
y = np.repeat(["blocks", "mixed"], 30)
maker = ProductKernel(
    "MarkovChain", horizon=9, model_params={"alphabet": "ACGT", "smoothing": 0.5}
)

fig = plt.figure(figsize=(8.5, 6.4), layout="constrained")
upper, lower = fig.subfigures(2, 1)
GramDisplay.from_estimator(maker, strings, y, ax=upper.subplots(1, 2))
upper.suptitle("60 strings, a Markov chain fitted to each: kernel and eigenvalues")
HorizonDisplay.from_estimator(maker.fit(strings), range(40), y, ax=lower.subplots())
plt.show()
