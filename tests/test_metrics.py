"""Variation of information is a metric on partitions; the signal-to-noise ratio is in decibels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ikpca.errors import InvalidInput
from ikpca.metrics import signal_to_noise_ratio, variation_of_information


def clusterings(number):
    """Draw label vectors of one length."""
    return st.integers(1, 30).flatmap(
        lambda length: st.tuples(
            *[st.lists(st.integers(0, 4), min_size=length, max_size=length)] * number
        )
    )


def entropy(labels):
    shares = np.unique(labels, return_counts=True, axis=-1)[1] / np.shape(labels)[-1]
    return -np.sum(shares * np.log(shares))


def same_partition(first, second):
    first, second = np.array(first), np.array(second)
    return np.array_equal(first[:, None] == first, second[:, None] == second)


@given(clusterings(2))
def test_conditional_entropies_from_joint_entropy(pair):
    joint = entropy(np.array(pair))
    expected = 2 * joint - entropy(pair[0]) - entropy(pair[1])
    assert variation_of_information(*pair) == pytest.approx(expected, abs=1e-12)


@given(clusterings(2))
def test_symmetric_and_zero_only_for_the_same_partition(pair):
    distance = variation_of_information(*pair)
    assert distance == pytest.approx(variation_of_information(*pair[::-1]), abs=1e-12)
    assert (distance == 0) == same_partition(*pair)
    assert distance >= 0


@given(clusterings(3))
def test_variation_of_information_satisfies_the_triangle_inequality(three):
    a, b, c = three
    both = variation_of_information(a, b) + variation_of_information(b, c)
    assert variation_of_information(a, c) <= both + 1e-12


@given(clusterings(1), st.permutations(range(5)))
def test_names_of_clusters_do_not_matter(one, names):
    renamed = [f"cluster {names[label]}" for label in one[0]]
    assert variation_of_information(one[0], renamed) == 0


def test_a_random_clustering_of_usps(data_folder):
    """Günter 2006 has 4.54 nats, twice the entropy of the labels; equal odds give 4.56."""
    with np.load(data_folder / "usps.npz") as data:
        labels = data["y_train"]
    rng = np.random.default_rng(0)
    assert round(2 * entropy(labels), 2) == 4.54
    uniform = rng.integers(0, 10, len(labels))
    assert round(variation_of_information(labels, uniform), 2) == 4.56


INVALID_LABELS = [
    ([0, 1], [0, 1, 1], "2 labels and second 3"),
    ([], [], "first has shape"),
    ([[0, 1]], [0, 1], "vector"),
    ([0.0, np.nan], [0, 1], "NaN"),
]


def test_invalid_labels_are_rejected(subtests):
    for first, second, message in INVALID_LABELS:
        with subtests.test(message), pytest.raises(InvalidInput, match=message):
            variation_of_information(first, second)


@pytest.mark.parametrize("decibels", [-7.0, 0.0, 13.5])
def test_noise_of_known_power(decibels):
    rng = np.random.default_rng(0)
    clean, noise = rng.normal(size=(2, 20, 30)) + 3
    power = np.sum((clean - clean.mean()) ** 2)
    noise *= np.sqrt(power / 10 ** (decibels / 10) / np.sum(noise**2))
    assert signal_to_noise_ratio(clean, clean + noise) == pytest.approx(decibels, abs=1e-9)
    # The ratio knows no unit and no origin.
    assert signal_to_noise_ratio(5 + 255 * clean, 5 + 255 * (clean + noise)) == pytest.approx(
        decibels, abs=1e-9
    )


def test_bytes_do_not_wrap_around():
    clean = np.array([[0, 255]], dtype=np.uint8)
    assert signal_to_noise_ratio(clean, clean) == np.inf
    assert signal_to_noise_ratio(clean, clean[:, ::-1]) == pytest.approx(10 * np.log10(0.25))


INVALID_SIGNALS = [
    ([1.0, 2.0], [[1.0, 2.0]], "must be equal"),
    ([], [], "not empty"),
    ([1.0, np.nan], [1.0, 2.0], "NaN"),
    ([1.0, 2.0], [np.inf, 2.0], "infinite"),
    ([2.0, 2.0], [1.0, 2.0], "constant"),
]


def test_invalid_signals_are_rejected(subtests):
    for clean, estimate, message in INVALID_SIGNALS:
        with subtests.test(message), pytest.raises(InvalidInput, match=message):
            signal_to_noise_ratio(clean, estimate)
