"""
Which words lie together?
=========================

Word vectors are learned from text. Words that are used in similar ways have similar directions. A
map of the 2000 most frequent words of the GloVe vectors (``load_glove``) shows themes, from months
to medicine. It also shows a limit of all maps: a word with two meanings has only one place.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics.pairwise import cosine_similarity

from manifoldry import TSNE
from manifoldry.datasets import load_glove
from manifoldry.plotting import plot_embedding

glove = load_glove()
X, words = glove.X[:2000], glove.sample_names[:2000]

# %%
# The direction of a word vector carries the meaning, and the cosine metric compares directions
# only.

model = TSNE(metric="cosine", random_state=0).fit(X)
similarity = cosine_similarity(X)

# %%
# Which parts of the map belong to which theme? For each of seven words, color the 20 words that are
# most similar to it in the 100 dimensions of the data. The map did not use these themes.

themes = {
    "months": "november", "family": "mother", "Europe": "germany", "sport": "football",
    "medicine": "hospital", "finance": "dollar", "elections": "votes",
}  # fmt: skip
theme = np.full(len(words), "none", dtype=object)
for name, word in themes.items():
    theme[similarity[words == word].ravel().argsort()[-21:]] = name
in_theme = theme != "none"
fig, ax = plt.subplots(figsize=(6.4, 4.5), layout="constrained")
plot_embedding(model, "silver", ax=ax, size=4)
Y, title = model.embedding_[in_theme], "t-SNE of 2000 words"
plot_embedding(Y, theme[in_theme], ax=ax, names=True, size=45, title=title)
_ = plt.setp(ax.texts, fontsize=14)

# %%
# The words of a theme lie together, although a few words of each theme are elsewhere. The next
# picture shows all words at four places:

fig, axes = plt.subplots(2, 2, figsize=(9, 7.5), layout="constrained")
for ax, word in zip(axes.flat, ["november", "doctor", "river", "dollar"], strict=True):
    distance = np.linalg.norm(model.embedding_ - model.embedding_[words == word], axis=1)
    near = distance.argsort()[:22]
    title = f"around “{word}”"
    plot_embedding(model.embedding_[near], words[near], names=True, size=2, ax=ax, title=title)

# %%
# Do the nearest words on the map agree with the most similar words in the data?

for word in ["november", "mother", "washington", "house"]:
    place = model.embedding_[words == word]
    on_map = words[np.linalg.norm(model.embedding_ - place, axis=1).argsort()[1:6]]
    in_data = words[similarity[words == word].ravel().argsort()[-2:-7:-1]]
    print(f"{word}\n    data: {', '.join(in_data)}\n    map:  {', '.join(on_map)}")

# %%
# For most words they do. But “house” is similar to “senate” and to “room”, and “Washington” is a
# city, a state and a government. In 100 dimensions, a word can be close to several groups that are
# far from each other. In two dimensions it cannot. The map has put “house” among the buildings and
# “Washington” among cities and states. Their other meanings are lost.
#
# So use a map for an overview of themes. To search for similar words, use the vectors themselves.
# :doc:`/trust` explains how to measure how many neighbors a map keeps, and
# :ref:`sphx_glr_gallery_first_maps_cells.py` does so for another data set.
