"""A small arm in ASF and AMC: shoulder, upper arm, forearm with a fixed hand."""

from __future__ import annotations

ASF = """\
# an arm
:version 1.10
:name arm
:units
  mass 1.0
  length 0.45
  angle deg
:documentation
   anything: {at} all
:root
   order TX TY TZ RX RY RZ
   axis XYZ
   position 0 0 0
   orientation 0 0 0
:bonedata
  begin
     id 1
     name upper
     direction 1 0 0
     length 2
     axis 0 0 0 XYZ
    dof rx ry rz
    limits (-90.0 90.0)
           (-90.0 90.0)
           (-90.0 90.0)
  end
  begin
     id 2
     name fore
     direction 1 7.6e-016 0
     length 1
     axis 0 90 0 XYZ
    dof rx
    limits (-10.0 170.0)
  end
  begin
     id 3
     name hand
     direction 0 1 0
     length 0.5
     axis 0 0 0 XYZ
  end
:hierarchy
  begin
    root upper
    upper fore
    fore hand
  end
"""

AMC = """\
#!OML:ASF an arm
:FULLY-SPECIFIED
:DEGREES
1
root 0 5 0 0 0 0
upper 0 0 0
fore 0
2
root 1 5 0 0 0 0
upper 0 0 90
fore -3.2e-015
3
root 0 0 0 0 90 0
upper 0 0 0
fore 90
"""


def edited(text: str, line: int, new: str | None) -> str:
    """The text with one line, counted from 1, replaced or left out."""
    lines = text.splitlines()
    lines[line - 1 : line] = [] if new is None else [new]
    return "\n".join(lines) + "\n"
