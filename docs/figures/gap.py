"""What is known about the optimum after each pass of coordinate ascent."""

import matplotlib.pyplot as plt
import numpy as np

from maxent.datasets import load_breast_cancer_wisconsin
from maxent.discrimination import ExponentialMargin, solve_linear_dual

X, y = load_breast_cancer_wisconsin(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
signs = np.where(y == 1, 1.0, -1.0)
passes = np.arange(1, 26)
dual, gap = [], []
for n in passes:
    result = solve_linear_dual(
        X,
        signs,
        ExponentialMargin(rate=5.0),
        bias=1.0,
        sample_weight=np.full(len(y), 0.1),  # C = 0.5
        solver="coordinate",
        tol=1e-12,
        max_iter=int(n),
    )
    dual.append(result.objective)
    gap.append(result.gap)
dual, gap = np.array(dual), np.array(gap)

figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 2.9))
left.fill_between(passes, dual, dual + gap, color="#dbe9f6")
left.plot(passes, dual + gap, c="#d55e00", label="primal objective G")
left.plot(passes, dual, c="#0072b2", ls="--", label="dual objective J")
left.set(xlabel="passes", ylabel="objective", xlim=(1, 15), ylim=(0, None))
left.legend(loc="lower right")
right.semilogy(passes, gap, c="0.2")
right.set(xlabel="passes", ylabel="duality gap G − J", xlim=(1, 25))
plt.show()
