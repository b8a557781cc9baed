"""Sizes that no recording has; refused before memory is asked for."""

from __future__ import annotations

from ikpca.datasets.lines import Line

__all__ = ["check_joints", "check_size"]

#: Bodies with fingers and faces stay below 300.
_MOST_JOINTS = 1000
#: Joints times frames: three hours of 31 joints at 60 frames per second.
_MOST_POSITIONS = 20_000_000


def check_joints(joints: int, line: Line) -> None:
    """Refuse a skeleton that is no body."""
    if joints > _MOST_JOINTS:
        raise line.fault(
            f"a skeleton must have at most {_MOST_JOINTS} joints", "fetch the file again"
        )


def check_size(frames: int, joints: int, line: Line) -> None:
    """Refuse what would not fit into memory."""
    if frames * joints > _MOST_POSITIONS:
        raise line.fault(
            f"{frames} frames of {joints} joints are more than {_MOST_POSITIONS} positions",
            "cut the file into parts",
        )
