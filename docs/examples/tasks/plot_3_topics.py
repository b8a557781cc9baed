"""
Topics in a stream of texts
===========================

Topic models such as BERTopic compute embeddings of texts, reduce their dimension, and cluster them.
For a stream of texts, the reduction must be learned incrementally. This example computes embeddings
by hashing words, reduces them with :class:`ikpca.IncrementalKernelPCA`, and clusters them with
scikit-learn's ``MiniBatchKMeans``.

In BERTopic, pass the model as the reduction:
``BERTopic(umap_model=IncrementalKernelPCA(5, kernel="cosine"), ...)``.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import MiniBatchKMeans
from sklearn.feature_extraction.text import HashingVectorizer

from ikpca import IncrementalKernelPCA
from ikpca.metrics import variation_of_information
from ikpca.plotting import projections

TOPICS = {
    "cooking": "pan oven butter salt onion simmer dough spice recipe roast garlic flour",
    "sailing": "wind hull sail harbor tide rudder mast anchor deck rope buoy keel",
    "astronomy": "star orbit telescope planet galaxy comet lens eclipse moon dust nova spectrum",
    "gardening": "soil seed prune bloom compost root leaf hedge water bulb graft weed",
}
FILLER = ["the", "a", "and", "of", "to", "with", "in", "for", "on", "at", "it", "is", "was"]
rng = np.random.default_rng(0)


def texts(number):
    """Return short texts of words of one topic and filler words."""
    topics = rng.integers(len(TOPICS), size=number)
    words = [value.split() for value in TOPICS.values()]
    return topics, [
        " ".join([*rng.choice(words[topic], 5), *rng.choice(FILLER, 7)]) for topic in topics
    ]


embed = HashingVectorizer(n_features=256, stop_words=FILLER)
reduce = IncrementalKernelPCA(5, kernel="cosine", max_basis_rows=200)
cluster = MiniBatchKMeans(len(TOPICS), n_init=10, random_state=0)

# %%
# Learn from ten batches of 100 texts. The model keeps 200 rows of the embeddings.

for _ in range(10):
    topics, batch = texts(100)
    embeddings = embed.transform(batch).toarray()
    reduced = reduce.partial_fit(embeddings).transform(embeddings)
    cluster.partial_fit(reduced)
print(
    f"{reduce.n_samples_seen_} texts seen, {len(reduce.basis_)} rows kept, "
    f"{reduce.memory_usage_ / 1e6:.1f} MB"
)

# %%
# Components change during the stream, so that clusters learned early refer to earlier components.
# Therefore the clusters are fitted again to the last texts. (These texts are synthetic, and easier
# than real ones.)

topics, batch = texts(400)
reduced = reduce.transform(embed.transform(batch).toarray())
labels = cluster.fit(reduced[:200]).predict(reduced[200:])
print(
    f"clusters are {variation_of_information(labels, topics[200:]):.2f} nats from the true topics"
)
names = np.array(list(TOPICS))
projections(reduced, names[topics])
plt.title("400 new texts in the first two components", fontsize=10, loc="left")
