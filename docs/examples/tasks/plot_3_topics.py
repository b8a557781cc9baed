"""
Texts as they arrive
====================

Topic models in the manner of BERTopic embed texts, reduce the embeddings, and cluster what is
left. Where texts keep coming, the reduction has to be learned on the way: any object with
``partial_fit`` and ``transform`` will do. Here embeddings are made on the spot by hashing words,
reduced by :class:`ikpca.IncrementalKernelPCA`, and clustered by scikit-learn's
``MiniBatchKMeans``.

In BERTopic itself the model goes into the place of the reduction:
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
    "sailing": "wind hull sail harbour tide rudder mast anchor deck rope buoy keel",
    "astronomy": "star orbit telescope planet galaxy comet lens eclipse moon dust nova spectrum",
    "gardening": "soil seed prune bloom compost root leaf hedge water bulb graft weed",
}
FILLER = ["the", "a", "and", "of", "to", "with", "in", "for", "on", "at", "it", "is", "was"]
rng = np.random.default_rng(0)


def texts(number):
    """Short texts: some words of one topic among words that mean nothing."""
    topics = rng.integers(len(TOPICS), size=number)
    words = [value.split() for value in TOPICS.values()]
    return topics, [
        " ".join([*rng.choice(words[topic], 5), *rng.choice(FILLER, 7)]) for topic in topics
    ]


embed = HashingVectorizer(n_features=256, stop_words=FILLER)
reduce = IncrementalKernelPCA(5, kernel="cosine", max_basis_rows=200)
cluster = MiniBatchKMeans(len(TOPICS), n_init=10, random_state=0)

# %%
# Ten batches of 100 texts. None of the texts is kept, and of their embeddings 200 rows.

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
# Components settle while the stream goes on: clusters that were learned early live in a space that
# has since moved a little. So the clusters are learned once more from the last texts before they
# are used. (These texts are made up, and easier than any that people write.)

topics, batch = texts(400)
reduced = reduce.transform(embed.transform(batch).toarray())
labels = cluster.fit(reduced[:200]).predict(reduced[200:])
print(
    f"clusters are {variation_of_information(labels, topics[200:]):.2f} nats from the true topics"
)
names = np.array(list(TOPICS))
projections(reduced, names[topics])
plt.title("400 new texts in the first two components", fontsize=10, loc="left")
