"""Documents of three themes: their kernel, telling words, accuracy by number."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.pipeline import make_pipeline

from maxent import MaxEntClassifier, MEDClassifier
from maxent.kernels import ProductKernel

NOUNS = {
    "sea": "ship sail wave harbour tide island crew wind",
    "sky": "star moon cloud night comet light wind planet",
    "law": "court judge claim paper ship order oath night",
}
COMMON = "man town day house road letter friend door"
FRAME = "the %s came to the %s and found a %s by the %s"


def make(n, rng):
    """Sentences, n on each theme, mixed, and their themes."""
    y = rng.permutation(np.repeat(list(NOUNS), n))
    return [FRAME % tuple(rng.choice(f"{NOUNS[k]} {COMMON}".split(), 4)) for k in y], y


rng = np.random.default_rng(0)
fig, axes = plt.subplots(1, 3, figsize=(10, 3.2), layout="constrained")

texts, y = make(100, rng)
y_long = np.repeat(np.unique(y), 20)  # documents of five sentences
long = [" ".join(rng.choice(np.array(texts)[y == k], 5)) for k in y_long]
K = ProductKernel().fit_transform(CountVectorizer().fit_transform(long))
off = K[~np.eye(len(K), dtype=bool)]
picture = axes[0].imshow(K, vmin=off.min(), vmax=off.max(), interpolation="nearest")
bar = fig.colorbar(picture, ax=axes[0], shrink=0.8, orientation="horizontal")
bar.set_label("kernel")
axes[0].set(title="product kernel", xticks=[10, 30, 50], yticks=[])
axes[0].set_xticklabels(np.unique(y))

machine = make_pipeline(CountVectorizer(), MaxEntClassifier()).fit(texts, y)
words, weights = machine[0].get_feature_names_out(), machine[-1].coef_[1]
shown = np.argsort(weights)[[*range(4), *range(-8, 0)]]
colours = np.where(weights[shown] > 0, "#0072b2", "#d55e00")
axes[1].barh(words[shown], weights[shown], color=colours)
axes[1].set(title="words for and against “sea”", xlabel="weight, nats for each")

machines = {
    "MaxEntClassifier": make_pipeline(CountVectorizer(), MaxEntClassifier()),
    "MEDClassifier, joint": make_pipeline(
        TfidfVectorizer(), MEDClassifier("linear", multi_class="joint")
    ),
    "product kernel": make_pipeline(
        CountVectorizer(),
        ProductKernel(),
        MEDClassifier("precomputed", C=10),
    ),
}
sizes = np.array([5, 10, 20, 40, 80])
right = {name: np.zeros(len(sizes)) for name in machines}
for _ in range(10):
    new, y_new = make(100, rng)
    for i, n in enumerate(sizes):
        texts, y = make(n, rng)
        for name, machine in machines.items():
            right[name][i] += machine.fit(texts, y).score(new, y_new) / 10
for (name, share), mark in zip(right.items(), "os^"):
    axes[2].plot(3 * sizes, share, marker=mark, label=name)
axes[2].set(xscale="log", xlabel="training documents", title="accuracy on new ones")
axes[2].set_xticks(3 * sizes, 3 * sizes)
axes[2].minorticks_off()
axes[2].legend()
plt.show()
