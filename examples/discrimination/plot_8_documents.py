"""
Classify documents
==================

Which part of scikit-learn does a paragraph of its documentation describe? Word counts,
a maximum-entropy classifier with probabilities, and the words that decide.
"""

import importlib
import inspect

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from maxent import MaxEntClassifier

texts, topics = [], []
for topic in ("cluster", "ensemble", "linear_model", "metrics", "preprocessing"):
    module = importlib.import_module(f"sklearn.{topic}")
    for name in module.__all__:
        document = inspect.getdoc(getattr(module, name)) or ""
        paragraphs = [p for p in document.split("\n\n") if len(p.split()) >= 20]
        texts += paragraphs
        topics += [topic] * len(paragraphs)
topics = np.array(topics)
print(len(texts), "paragraphs of", len(set(topics)), "parts")

# %%
# Half of them are for training.

x, x_new, y, y_new = train_test_split(texts, topics, test_size=0.5, random_state=0)
words = CountVectorizer(token_pattern=r"[a-z]{3,}", stop_words="english", min_df=3)
model = make_pipeline(words, MaxEntClassifier(C=1.0)).fit(x, y)
print(f"{model.score(x_new, y_new):.3f} of the others right")

# %%
# The words with the largest weights for each part, and how far probabilities can be
# trusted: of the paragraphs with a probability of about .8, eight in ten should be
# right.

vocabulary = model[0].get_feature_names_out()
figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
for k, weight in enumerate(model[-1].coef_):
    top = np.argsort(-weight)[:5]
    at = 6 * k + np.arange(5)
    axes[0].barh(at, weight[top], label=model.classes_[k])
    for place, j in zip(at, top, strict=True):
        axes[0].text(0.02, place, vocabulary[j], va="center", fontsize="x-small")
axes[0].set(yticks=[], title="telling words", xlim=(0, 2))
axes[0].set_xlabel("weight, nats for each occurrence")
axes[0].invert_yaxis()
axes[0].legend(fontsize="x-small", loc="lower right")
proba = model.predict_proba(x_new)
sure = proba.max(axis=1)
right = model.classes_[proba.argmax(axis=1)] == y_new
edges = np.quantile(sure, np.linspace(0, 1, 9))
bins = np.clip(np.searchsorted(edges, sure, side="right") - 1, 0, 7)
said = [sure[bins == b].mean() for b in range(8)]
found = [right[bins == b].mean() for b in range(8)]
axes[1].plot([0.2, 1], [0.2, 1], color="0.6", lw=1)
axes[1].plot(said, found, marker="o")
axes[1].set(xlabel="probability of the answer", ylabel="share that is right")
axes[1].set_title("calibration on new paragraphs")
plt.show()
