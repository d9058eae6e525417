"""
A distribution from moments
===========================

A die shows 4.5 on average instead of 3.5. Which probabilities of its six faces say that
and nothing else? Those of largest entropy.
"""

import matplotlib.pyplot as plt
import numpy as np

from maxent.latent import fit_maxent

# %%
# The feature is the number of eyes, the moment its mean. Further features are further
# columns.

eyes = np.arange(1, 7)
figure, axes = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
for k, mean in enumerate((2.5, 3.5, 4.5)):
    result = fit_maxent(eyes[:, None].astype(float), [mean])
    p = result.prob
    print(f"mean {p @ eyes:.3f}, entropy {-(p @ np.log(p)):.3f} nats")
    axes.bar(eyes + 0.25 * (k - 1), p, width=0.25, label=f"mean {mean}")
axes.set(xlabel="eyes", ylabel="probability")
axes.legend(loc="upper center")
plt.show()
