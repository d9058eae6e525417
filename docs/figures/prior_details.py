"""Prior, potential and loss of three margin priors, one above the other."""

import matplotlib.pyplot as plt

from maxent.discrimination import ExponentialMargin, GaussianMargin, LaplaceMargin
from maxent.displays import MarginPriorDisplay

priors = [ExponentialMargin(5.0), LaplaceMargin(5.0), GaussianMargin(5.0)]
MarginPriorDisplay(priors).plot()
plt.show()
