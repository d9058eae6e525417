"""The exponential prior's loss approaches the hinge as its sharpness grows."""

import matplotlib.pyplot as plt
import numpy as np

from maxent.discrimination import ExponentialMargin, HingeMargin

m = np.linspace(-1.0, 1.5, 500)
figure, axes = plt.subplots(figsize=(5.2, 3.0))
styles = (("-", "#0072b2"), ("--", "#d55e00"), (":", "#009e73"))
for sharpness, (style, colour) in zip((2, 10, 100), styles):
    loss = ExponentialMargin(sharpness).loss(m) / sharpness
    axes.plot(m, loss, ls=style, c=colour, label=f"sharpness {sharpness}")
axes.plot(m, HingeMargin().loss(m), c="0.7", lw=1, zorder=0, label="hinge (SVC)")
axes.set(xlabel="margin m = y f(x)", ylabel="loss, C = 1")
axes.legend()
plt.show()
