"""Mutations of files, from single bits to forged manifests with valid checksums."""

from __future__ import annotations

import copy
import hashlib
import json
import tomllib

from safetensors import safe_open
from safetensors.numpy import save

_IN_CONTENT = 0.9
VALUES = (
    *(None, True, False, "", "x", "nan", "\ud7ff", [], {}, [[]]),
    *(0, -1, 1, 2**31, 2**63, 2**64, -(2**63), 10**30, 10**400, 0.5, 1e308, -0.0),
    *("array0", "array1", "estimators.KernelPCA", "kernels.Gaussian", "solvers.Outcome"),
)


def damaged(content, rng):
    """Return bytes with one to three mutations."""
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
    """Change digits, which are in sizes, offsets and versions."""
    places = [place for place, byte in enumerate(content[:4096]) if 48 <= byte <= 57]
    if not places:
        return content
    place = places[int(rng.integers(len(places)))]
    number = rng.choice([b"0", b"9", b"-1", b"1e9", b"99999999999999999999", b""])
    return content[:place] + bytes(number) + content[place + 1 :]


_DAMAGES = (_flipped, _cut, _without_a_part, _with_noise, _doubled, _with_a_number_changed)


def forged(path, rng):
    """Return a file with a changed manifest and a valid checksum."""
    with safe_open(path, framework="np") as file:
        manifest = json.loads(file.metadata()["ikpca"])
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    for _ in range(int(rng.integers(1, 4))):
        # Most of what surrounds the content is refused at once.
        _change_tree(_inner(manifest) if rng.random() < _IN_CONTENT else manifest, rng)
    text = json.dumps(manifest)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return save(arrays, {"ikpca": text, "sha256": digest})


def _inner(manifest):
    """Return the content, if it can still be parsed."""
    content = manifest.get("content")
    return content if isinstance(content, dict | list) else manifest


def _change_tree(tree, rng):
    """Replace a value at a random place of nested lists and objects."""
    places = list(_places(tree))
    if not places:
        return
    inner, key = places[int(rng.integers(len(places)))]
    value = copy.deepcopy(VALUES[int(rng.integers(len(VALUES)))])
    if isinstance(inner, dict) and rng.random() < 0.2:
        inner[str(value)] = inner.pop(key)
    elif rng.random() < 0.1:
        del inner[key]
    else:
        inner[key] = value


def _places(tree):
    """Yield all lists and objects with their keys."""
    for key in list(tree) if isinstance(tree, dict) else range(len(tree)):
        yield tree, key
        if isinstance(tree[key], dict | list):
            yield from _places(tree[key])


def forged_toml(content, rng):
    """Return valid TOML with changed values."""
    document = tomllib.loads(content.decode())
    for _ in range(int(rng.integers(1, 4))):
        _change_tree(document, rng)
    lines = (f"{json.dumps(key)} = {_inline(value)}" for key, value in document.items())
    return "\n".join(lines).encode("utf-8", "replace")


def _inline(value):
    if isinstance(value, dict):
        pairs = (f"{json.dumps(key)} = {_inline(part)}" for key, part in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_inline, value))}]"
    # TOML has no null.
    return json.dumps("null" if value is None else value)


#: Words of all our text formats, and words that no format wants.
_WORDS = (
    b"nan", b"inf", b"-inf", b"1e999", b"-1", b"0", b"1e-320", b"99999999999999999999", b"1_000",
    b"0x10", b"root", b"begin", b"end", b"dof", b"rx", b"name", b"length", b"{", b"}",
    b"[", b"[[", b"]]",
    b"=", b'"', b'"""', b"'", b",", b";", b"\t", b"#", b":", b"\xd9\xa3", b"\xff\xfe", b"\0",
    b"true", b"1979-05-27", b"{}", b"[]", b"\xef\xbb\xbf", b"\r", b"\x0b", b"\xe2\x80\xa8",
)  # fmt: skip
#: So often is a part repeated at most; nested a thousand deep is still a small file.
_REPEATS = 2000


def damaged_text(content, rng):
    """Return text with one to four changes of words and lines."""
    for _ in range(int(rng.integers(1, 5))):
        content = _TEXT_DAMAGES[int(rng.integers(len(_TEXT_DAMAGES)))](content, rng)
    return content


def _with_another_word(content, rng):
    words = content.split(b" ")
    words[int(rng.integers(len(words)))] = _WORDS[int(rng.integers(len(_WORDS)))]
    return b" ".join(words)


def _with_a_word_more(content, rng):
    place = int(rng.integers(len(content) + 1))
    return content[:place] + _WORDS[int(rng.integers(len(_WORDS)))] + content[place:]


def _with_a_word_repeated(content, rng):
    word = _WORDS[int(rng.integers(len(_WORDS)))]
    place, times = int(rng.integers(len(content) + 1)), int(rng.integers(2, _REPEATS))
    between = (b"", b" ", b"\n")[int(rng.integers(3))]
    return content[:place] + between.join([word] * times) + content[place:]


def _with_lines_changed(content, rng):
    """Remove, duplicate or move a line."""
    lines = content.split(b"\n")
    kind, one, other = rng.integers(3), *(int(n) for n in rng.integers(len(lines), size=2))
    if kind == 0:
        del lines[one]
    elif kind == 1:
        lines.insert(other, lines[one])
    else:
        lines[one], lines[other] = lines[other], lines[one]
    return b"\n".join(lines)


def _with_lines_repeated(content, rng):
    lines = content.split(b"\n")
    start, stop = sorted(int(place) for place in rng.integers(len(lines) + 1, size=2))
    times = int(rng.integers(2, 50))
    return b"\n".join(lines[:start] + lines[start : start + 5] * times + lines[stop:])


_TEXT_DAMAGES = (
    _with_another_word,
    _with_a_word_more,
    _with_a_word_repeated,
    _with_lines_changed,
    _with_lines_repeated,
    _with_a_number_changed,
)
