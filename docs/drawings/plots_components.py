from sklearn.datasets import load_digits

from ikpca import KernelPCA
from ikpca.plotting import components

model = KernelPCA(12, kernel="rbf", gamma=0.02).fit(load_digits().data[:600] / 16)
components(model, (8, 8))
