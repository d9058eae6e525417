"""What columns of several kinds say of a class, and how right the probabilities are."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.calibration import calibration_curve

from maxent import MEDGenerativeClassifier
from maxent.families import Beta, Categorical, Gamma, Gaussian, Poisson, VonMisesFisher

rng = np.random.default_rng(0)
n = 2400
ill = rng.integers(0, 2, n)
table = pd.DataFrame(
    {
        "visits": rng.poisson(2 + 2 * ill),
        "height": rng.normal(170, 7, n),
        "weight": rng.normal(70 + 6 * ill, 9),
        "share": rng.beta(2 + ill, 3),
        "wait": rng.gamma(2 + ill, 3.0),
        "hour": rng.vonmises(1.0 * ill, 2.0),
        "ward": np.where(rng.random(n) < 0.3 + 0.3 * ill, "east", "west"),
    }
)
kinds = {
    "visits": Poisson,
    ("height", "weight"): Gaussian,
    "share": Beta,
    "wait": Gamma,
    "hour": VonMisesFisher,
    "ward": Categorical,
}
model = MEDGenerativeClassifier(kinds).fit(table[:400], ill[:400])
new, truth = table[400:], ill[400:]

rows = model._encode(new.to_numpy(dtype=object))
low, high = model.posteriors_
names = [", ".join(table.columns[list(own)]) for own in high.columns]

fig, (above, below) = plt.subplots(
    2, 1, figsize=(7.5, 6.0), height_ratios=(1.2, 1), layout="constrained"
)
for place, (own, a, b) in enumerate(
    zip(high.columns, high.factors, low.factors, strict=True)
):
    x = rows[:300, list(own)]
    said = a.expected_log_prob(x) - b.expected_log_prob(x)
    jitter = rng.uniform(-0.3, 0.3, len(said))
    colors = np.where(truth[:300] == 1, "tab:red", "tab:blue")
    above.scatter(said, place + jitter, s=4, c=colors, linewidths=0)
above.axvline(0.0, color="k", lw=0.5)
above.set(
    yticks=range(len(names)),
    yticklabels=names,
    xlim=(-4, 4),
    xlabel="for the second class, nats (red: rows of that class)",
)
below.plot([0, 1], [0, 1], "k", lw=0.5)
for title, options in {
    "likelihood='predictive'": {"likelihood": "predictive"},
    "margin='logistic', level=0, C=1": {"margin": "logistic", "level": 0, "C": 1.0},
}.items():
    other = MEDGenerativeClassifier(kinds, **options).fit(table[:400], ill[:400])
    chance = other.predict_proba(new)[:, 1]
    observed, predicted = calibration_curve(truth, chance, n_bins=8)
    below.plot(predicted, observed, "o-", ms=4, label=title)
below.legend(fontsize="small", frameon=False)
below.set(xlabel="predicted probability", ylabel="share of the class")

plt.show()
