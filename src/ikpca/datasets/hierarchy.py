"""The ``:hierarchy`` of an ASF file: which bone hangs on which."""

from __future__ import annotations

from ikpca.datasets.bones import Bone
from ikpca.datasets.lines import Line

__all__ = ["from_the_root"]


def from_the_root(lines: list[Line], bones: list[Bone]) -> list[tuple[Bone, int]]:
    """Bones sorted from the root outwards, each with the number of its parent joint.

    Joint 0 is the root; joint j is the far end of the j-th bone of the result.
    """
    by_name = {bone.name: bone for bone in bones}
    children = _children(_between(lines), by_name)
    result: list[tuple[Bone, int]] = []
    waiting = [(name, 0) for name in reversed(children.get("root", []))]
    while waiting:
        name, parent = waiting.pop()
        result.append((by_name[name], parent))
        joint = len(result)
        waiting += [(child, joint) for child in reversed(children.get(name, []))]
    _all_reached(bones, {bone.name for bone, _ in result}, children, lines)
    return result


def _between(lines: list[Line]) -> list[Line]:
    """What stands between ``begin`` and ``end``."""
    if lines[0].words[0].lower() != "begin":
        raise lines[0].fault("the hierarchy must start with 'begin'", "add the missing 'begin'")
    if lines[-1].words[0].lower() != "end":
        raise lines[-1].fault(
            "the hierarchy has no 'end'", "add the missing 'end' or fetch the file again"
        )
    return lines[1:-1]


def _children(lines: list[Line], bones: dict[str, Bone]) -> dict[str, list[str]]:
    """Children by parent; a child has one parent only."""
    children: dict[str, list[str]] = {}
    placed: set[str] = {"root"}
    for line in lines:
        parent, *names = line.words
        for name in (parent, *names):
            if name not in bones and name != "root":
                raise line.fault(
                    f"bone {name[:40]!r} is not defined in :bonedata", "define or correct it"
                )
        for name in names:
            if name in placed:
                raise line.fault(
                    f"{name!r} can have one parent only, and the root none",
                    "remove it from all lines but one",
                )
            placed.add(name)
        children.setdefault(parent, []).extend(names)
    return children


def _all_reached(
    bones: list[Bone], reached: set[str], children: dict[str, list[str]], lines: list[Line]
) -> None:
    """Name a bone outside the tree, where it is said to hang on a cycle or where it is defined."""
    lost = [bone for bone in bones if bone.name not in reached]
    if not lost:
        return
    held = {child for names in children.values() for child in names}
    for bone in lost:
        if bone.name not in held:
            raise bone.line.fault(
                f"bone {bone.name!r} has no parent in :hierarchy", "add it there or remove it"
            )
    cyclic = {bone.name for bone in lost}
    line = next(line for line in lines if line.words[0] in cyclic)
    raise line.fault(
        f"bone {line.words[0]!r} hangs on itself through a cycle and not on the root",
        "correct the hierarchy",
    )
