import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from ikpca import KernelPCA
from ikpca.plotting import convergence, projections, scree

X, y = load_digits(return_X_y=True)
X = X / 16
model = KernelPCA(12, kernel="rbf", gamma=0.02, eigen_solver="krylov", random_state=0).fit(X)

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12, 3.4), layout="constrained")
scree(model, ax=left)
projections(model.transform(X), y, ax=middle)
convergence(model, ax=right)
