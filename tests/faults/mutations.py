"""Damage to files, from single bits to forged manifests with the right checksums."""

from __future__ import annotations

import copy
import hashlib
import json

from safetensors import safe_open
from safetensors.numpy import save

VALUES = (
    *(None, True, False, "", "x", "nan", "\ud7ff", [], {}, [[]]),
    *(0, -1, 1, 2**31, 2**63, 2**64, -(2**63), 10**30, 0.5, 1e308, -0.0),
    *("array0", "array1", "estimators.KernelPCA", "kernels.Gaussian", "loop.Outcome"),
)


def damaged(content, rng):
    """Bytes with one to three kinds of damage."""
    for _ in range(int(rng.integers(1, 4))):
        content = _DAMAGES[int(rng.integers(len(_DAMAGES)))](content, rng)
    return content


def _flipped(content, rng):
    changed = bytearray(content)
    for _ in range(int(rng.integers(1, 9))):
        if changed:
            changed[int(rng.integers(len(changed)))] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def _cut(content, rng):
    return content[: int(rng.integers(len(content) + 1))]


def _without_a_part(content, rng):
    start, stop = sorted(int(place) for place in rng.integers(len(content) + 1, size=2))
    return content[:start] + content[min(stop, start + 64) :]


def _with_noise(content, rng):
    place = int(rng.integers(len(content) + 1))
    return content[:place] + rng.bytes(int(rng.integers(1, 64))) + content[place:]


def _doubled(content, rng):
    start, stop = sorted(int(place) for place in rng.integers(len(content) + 1, size=2))
    return content[:stop] + content[start:]


def _with_a_number_changed(content, rng):
    """Digits are where sizes, offsets and versions are."""
    places = [place for place, byte in enumerate(content[:4096]) if 48 <= byte <= 57]
    if not places:
        return content
    place = places[int(rng.integers(len(places)))]
    number = rng.choice([b"0", b"9", b"-1", b"1e9", b"99999999999999999999", b""])
    return content[:place] + bytes(number) + content[place + 1 :]


_DAMAGES = (_flipped, _cut, _without_a_part, _with_noise, _doubled, _with_a_number_changed)


def forged(path, rng):
    """The bytes of a file whose manifest was changed, and its checksum with it."""
    with safe_open(path, framework="np") as file:
        manifest = json.loads(file.metadata()["ikpca"])
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    for _ in range(int(rng.integers(1, 4))):
        _change_tree(manifest, rng)
    text = json.dumps(manifest)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return save(arrays, {"ikpca": text, "sha256": digest})


def _change_tree(tree, rng):
    """Another value at a random place of nested lists and objects."""
    while True:
        keys = list(tree) if isinstance(tree, dict) else list(range(len(tree)))
        if not keys:
            return
        key = keys[int(rng.integers(len(keys)))]
        inner = tree[key]
        if isinstance(inner, dict | list) and len(inner) and rng.random() < 0.8:
            tree = inner
            continue
        value = copy.deepcopy(VALUES[int(rng.integers(len(VALUES)))])
        if isinstance(tree, dict) and rng.random() < 0.2:
            tree[str(value)] = tree.pop(key)
        elif isinstance(tree, dict) and rng.random() < 0.1:
            del tree[key]
        else:
            tree[key] = value
        return
