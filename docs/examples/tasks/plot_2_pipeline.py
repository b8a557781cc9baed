"""
Features for a linear classifier
================================

A linear classifier cannot separate two concentric rings in input space, but it can with kernel
components as features. ``KernelPCA`` is a scikit-learn transformer and can be used in a pipeline.
The kernel width and the number of components are chosen by cross-validation.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_circles
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline

from ikpca import KernelPCA
from ikpca.plotting import projections

X, y = make_circles(500, factor=0.4, noise=0.15, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, random_state=0)

pipeline = make_pipeline(KernelPCA(kernel="rbf"), LogisticRegression())
search = GridSearchCV(
    pipeline,
    {"kernelpca__gamma": [0.01, 0.1, 1.0, 10.0], "kernelpca__n_components": [2, 4, 8]},
    cv=4,
).fit(X_train, y_train)
linear = LogisticRegression().fit(X_train, y_train)
print(search.best_params_)
print(f"linear classifier on the points:     {linear.score(X_test, y_test):.2f}")
print(f"linear classifier on the components: {search.score(X_test, y_test):.2f}")

# %%
# The outer ring is blue, the inner ring orange; the shade is the predicted probability of the inner
# ring. In the plane of two components, the rings are linearly separable.

figure, (left, right) = plt.subplots(1, 2, figsize=(8.5, 3.6), layout="constrained")
x = np.linspace(-1.6, 1.6, 120)
grid = np.stack(np.meshgrid(x, x), axis=-1).reshape(-1, 2)
left.contourf(
    x, x, search.predict_proba(grid)[:, 1].reshape(120, 120), levels=20, cmap="PuOr_r", alpha=0.6
)
left.scatter(*X_test.T, color=np.array(["C0", "C1"])[y_test], edgecolor="white", s=18)
left.set_title("points and predicted probability", fontsize=10)
projections(search.best_estimator_[0].transform(X_test), y_test, pair=(0, 2), ax=right)
right.set_title("the third component is the radius", fontsize=10)
