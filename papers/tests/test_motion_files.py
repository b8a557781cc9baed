"""Corrupt motion files: one sentence with file, line, rule and remedy, and nothing but that."""

from __future__ import annotations

import contextlib
import os
import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ikpca.errors import InvalidInput
from ikpca_papers.mocap import (
    Motion,
    Skeleton,
    from_rows,
    in_metres,
    read_asf_amc,
    read_bvh,
    read_motion,
    synthetic_walker,
    with_noise,
    write_motion,
)
from papers.tests.motion_files import AMC, ASF, BVH, edited

#: What is changed (a line and its new text, None to leave it out), and the line and words expected.
CORRUPT_ASF = {
    "no units of length": ((6, "length x"), 6, "'length' must be a finite number, not 'x'"),
    "zero unit": ((6, "length 0"), 6, "'length' must be positive"),
    "unit of angles": ((7, "angle turns"), 7, "'angle' must be deg or rad"),
    "no root": ((10, ":roots"), 48, "ends without a section :root"),
    "no bonedata": ((15, None), 47, "ends without a section :bonedata"),
    "no hierarchy": ((43, ":hierarchi"), 48, "ends without a section :hierarchy"),
    "second section": ((43, ":units"), 43, "a second section :units"),
    "text before sections": ((1, "arm"), 1, "must start with a section"),
    "root without order": ((11, None), 10, "the root has no 'order'"),
    "order of the root": ((11, "order TX TY TY"), 11, "'order' must name TX"),
    "axis of the root": ((12, "axis XYY"), 12, "order of axes must be like XYZ, not 'XYY'"),
    "root at two numbers": ((13, "position 0 0"), 13, "'position' must have 3 values, not 2"),
    "no begin": ((16, None), 16, "must start with 'begin'"),
    "no end": ((26, None), 26, "end with 'end'"),
    "no name": ((18, None), 16, "the bone has no 'name'"),
    "two names": ((18, "name upper arm"), 18, "'name' must be followed by one word"),
    "name twice": ((29, "name upper"), 29, "the name 'upper' is taken"),
    "a bone called root": ((29, "name root"), 29, "the name 'root' is taken"),
    "keyword twice": ((20, "direction 1 0 0"), 20, "a second 'direction'"),
    "unknown keyword": ((20, "lenght 2"), 20, "unknown keyword 'lenght'"),
    "NaN": ((19, "direction nan 0 0"), 19, "'direction' must be a finite number, not 'nan'"),
    "overflow": ((20, "length 1e999"), 20, "must be a finite number, not '1e999'"),
    "underscore": ((20, "length 1_0"), 20, "must be a finite number, not '1_0'"),
    "no unit vector": ((19, "direction 1 1 0"), 19, "'direction' must have length 1, not 1.41"),
    "negative length": ((20, "length -2"), 20, "'length' must not be negative"),
    "axis without order": ((21, "axis 0 0 0"), 21, "'axis' before the order"),
    "stretching": ((22, "dof rx ry l"), 22, "'dof' must name rotations"),
    "undefined bone": ((46, "upper four"), 46, "bone 'four' is not defined"),
    "second parent": ((47, "fore upper hand"), 47, "'upper' can have one parent only"),
    "parent of the root": ((47, "fore hand root"), 47, "'root' can have one parent only"),
    "cycle": ((45, "fore upper"), 45, "bone 'fore' hangs on itself through a cycle"),
    "own parent": ((46, "fore fore"), 46, "bone 'fore' hangs on itself through a cycle"),
    "missing parent": ((47, None), 38, "bone 'hand' has no parent"),
    "hierarchy without begin": ((44, None), 44, "must start with 'begin'"),
    "hierarchy without end": ((48, None), 47, "the hierarchy has no 'end'"),
}
CORRUPT_AMC = {
    "unknown keyword": ((3, ":grad"), 3, "unknown keyword ':grad'"),
    "no number": ((4, None), 4, "a frame must start with its number"),
    "number of the wrong kind": ((8, "2.5"), 8, "must be a whole number, not '2.5'"),
    "number with too many digits": ((8, "9" * 5000), 8, "must be a whole number, not '999"),
    "gap": ((8, "3"), 8, "frame 3 follows frame 1"),
    "unknown bone": ((6, "uper 0 0 0"), 6, "'uper' is not a bone of the skeleton"),
    "bone that cannot turn": ((7, "hand 0"), 7, "'hand' is not a bone of the skeleton with"),
    "too few values": ((6, "upper 0 0"), 6, "'upper' must have 3 values, not 2"),
    "too many values": ((7, "fore 0 0"), 7, "'fore' must have 1 value, not 2"),
    "no values": ((7, "fore"), 7, "'fore' must have 1 value, not 0"),
    "text": ((7, "fore bent"), 7, "'fore' must be a finite number, not 'bent'"),
    "NaN": ((7, "fore NaN"), 7, "'fore' must be a finite number, not 'NaN'"),
    "bone twice": ((7, "upper 0 0 0"), 7, "'upper' a second time"),
    "bone left out": ((10, None), 10, "the frame ends without 'upper'"),
    "truncated": ((15, None), 14, "the frame ends without 'fore'"),
    "keyword too late": ((8, ":degrees"), 8, "must be a whole number, not ':degrees'"),
}
CORRUPT_BVH = {
    "no HIERARCHY": ((1, "HIERARCHIE"), 1, "must start with HIERARCHY"),
    "no name": ((2, "ROOT"), 2, "a name of its own, not ''"),
    "no brace": ((3, None), 3, "'{' must follow"),
    "brace too many": ((4, "{"), 4, "'{' must follow"),
    "unknown keyword": ((8, "OFFSETS 2 0 0"), 8, "unknown keyword 'OFFSETS'"),
    "no OFFSET": ((8, None), 13, "'elbow' has no OFFSET"),
    "no CHANNELS": ((9, None), 13, "'elbow' has no CHANNELS"),
    "OFFSET twice": ((9, "OFFSET 1 1 1"), 9, "a second OFFSET of 'elbow'"),
    "short OFFSET": ((8, "OFFSET 2 0"), 8, "OFFSET must have 3 values, not 2"),
    "infinite OFFSET": ((8, "OFFSET inf 0 0"), 8, "must be a finite number, not 'inf'"),
    "number of channels": ((9, "CHANNELS 4 Zrotation Yrotation Xrotation"), 9, "4 different names"),
    "channels without number": ((9, "CHANNELS Zrotation"), 9, "a whole number, not 'Zrotation'"),
    "no channels at all": ((9, "CHANNELS"), 9, "CHANNELS must be a whole number"),
    "channel twice": ((9, "CHANNELS 2 Xrotation Xrotation"), 9, "2 different names"),
    "unknown channel": (
        (9, "CHANNELS 1 Wrotation"),
        9,
        "'wrotation' is not a channel that 'elbow'",
    ),
    "moving joint": ((9, "CHANNELS 1 Xposition"), 9, "positions for the root alone"),
    "name twice": ((6, "JOINT shoulder"), 6, "a name of its own, not 'shoulder'"),
    "second root": ((6, "ROOT elbow"), 6, "a file must have one ROOT"),
    "not a site": ((10, "End"), 10, "'End' must be followed by 'Site'"),
    "joint in an end site": ((12, "JOINT hand"), 12, "an end site has an OFFSET and nothing else"),
    "joint outside": ((15, "} JOINT other"), 15, "outside of the block"),
    "block left open": ((15, None), 15, "MOTION comes before the hierarchy is complete"),
    "block closed twice": ((15, "} }"), 15, "outside of the block"),
    "no MOTION": ((16, None), 16, "unknown keyword 'Frames:'"),
    "no Frames": ((17, None), 17, "must go on with 'Frames:'"),
    "no Frame Time": ((18, None), 18, "must go on with 'Frame Time:'"),
    "frames in words": ((17, "Frames: three"), 17, "'Frames:' must be a whole number"),
    "no frames": ((17, "Frames: 0"), 17, "'Frames:' must be 1 or more"),
    "negative frames": ((17, "Frames: -3"), 17, "'Frames:' must be a whole number, not '-3'"),
    "more frames than there are": ((17, "Frames: 4"), 21, "ends after 3 of 4 frames"),
    "absurdly many frames": ((17, "Frames: 99999999999999"), 21, "ends after 3 of 99999999999999"),
    "more digits than Python reads": ((17, "Frames: " + "9" * 5000), 17, "must be a whole number"),
    "fewer frames than there are": (
        (17, "Frames: 2"),
        21,
        "must be 2 frames, and here",
    ),
    "no time": ((18, "Frame Time: 0"), 18, "'Frame Time:' must be positive"),
    "short frame": ((20, "1 5 0 90 0 0 0 0"), 20, "a frame must have 9 values, not 8"),
    "long frame": ((20, "1 5 0 90 0 0 0 0 0 0"), 20, "a frame must have 9 values, not 10"),
    "text in a frame": ((20, "1 5 0 90 0 0 0 x 0"), 20, "must be a finite number, not 'x'"),
    "truncated": ((21, None), 20, "ends after 2 of 3 frames"),
}
FORMATS = {"asf": (CORRUPT_ASF, ASF), "amc": (CORRUPT_AMC, AMC), "bvh": (CORRUPT_BVH, BVH)}
CASES = [(kind, case) for kind, (cases, _) in FORMATS.items() for case in cases]


@pytest.fixture(scope="module")
def read(tmp_path_factory):
    """Read bytes as a file of a kind; an ASF or AMC file goes with a sound one of the other."""
    folder = tmp_path_factory.mktemp("motion")
    (folder / "sound.asf").write_text(ASF)
    (folder / "sound.amc").write_text(AMC)

    def reader(kind, content):
        path = folder / f"wrong.{kind}"
        path.write_bytes(content)
        if kind == "asf":
            return read_asf_amc(path, folder / "sound.amc")
        if kind == "amc":
            return read_asf_amc(folder / "sound.asf", path)
        return read_bvh(path)

    return reader


@pytest.mark.parametrize(("kind", "case"), CASES)
def test_corrupt_files(read, kind, case):
    cases, sound = FORMATS[kind]
    (at, new), line, words = cases[case]
    with pytest.raises(InvalidInput) as raised:
        read(kind, edited(sound, at, new).encode())
    message = str(raised.value)
    where, _, sentence = message.partition(": ")
    assert where == f"wrong.{kind}, line {line}"
    assert words in message
    # A rule, a remedy, and the end of the only sentence.
    assert re.fullmatch(r"[^\n]+; [^\n]+\.", sentence)
    assert len(message) < 250


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "line 1: the file is empty"),
        (b"\r\n \t\n", "line 1: the file is empty"),
        (b"\x7fELF\x00\x00\x01", "line 1: binary content"),
        ("HIERARCHY".encode("utf-16"), "line 1: binary content"),
        (b"ok\n" * 3 + b"\x00", "line 4: binary content"),
        (bytes(range(1, 256)) * 4, "line "),
    ],
    ids=["empty", "blank", "binary", "UTF-16", "NUL later", "all bytes"],
)
def test_no_text_at_all(read, kind, content, words):
    with pytest.raises(InvalidInput, match=f"wrong.{kind}, {words}"):
        read(kind, content)


@pytest.mark.parametrize("kind", ["asf", "amc", "bvh"])
def test_no_such_file(tmp_path, kind):
    missing = tmp_path / f"missing.{kind}"
    for path in (missing, tmp_path):
        with pytest.raises(InvalidInput, match="no such file; check the path"):
            read_bvh(path) if kind == "bvh" else read_asf_amc(path, path)


def test_only_comments(read):
    with pytest.raises(InvalidInput, match=r"wrong\.amc, line 2: the file has no frames"):
        read("amc", b"# nothing\n:DEGREES\n")


# --- sizes ----------------------------------------------------------------------------------


def nested_bvh(depth):
    joints = "".join(f"JOINT j{n}\n{{\nOFFSET 0 1 0\nCHANNELS 0\n" for n in range(1, depth))
    root = "HIERARCHY\nROOT j0\n{\nOFFSET 0 0 0\nCHANNELS 1 Xrotation\n"
    return root + joints + "}\n" * depth + "MOTION\nFrames: 1\nFrame Time: 1\n90\n"


def test_deep_nesting_is_read(read):
    motion = read("bvh", nested_bvh(900).encode())
    assert motion.positions.shape == (1, 900, 3)
    assert np.allclose(motion.positions[0, -1], [0, 0, 899])


def test_absurdly_deep_nesting(read):
    # Five lines before the second joint, four for each.
    with pytest.raises(InvalidInput, match="line 4002: a skeleton must have at most 1000 joints"):
        read("bvh", nested_bvh(100_000).encode())


def test_a_long_chain_of_bones(read):
    bone = "begin\nname b{}\ndirection 0 1 0\nlength 1\naxis 0 0 0 XYZ\nend\n"
    bones = "".join(bone.format(n) for n in range(1001))
    chain = "root b0\n" + "".join(f"b{n} b{n + 1}\n" for n in range(1000))
    head = ":root\norder TX TY TZ\n:bonedata\n"
    text = f"{head}{bones}:hierarchy\nbegin\n{chain}end\n"
    with pytest.raises(InvalidInput, match="line 3: a skeleton must have at most 1000 joints"):
        read("asf", text.encode())


def test_more_positions_than_memory(read, monkeypatch):
    monkeypatch.setattr("ikpca_papers.mocap.text._MAX_POSITIONS", 8)
    for kind, line in (("bvh", 21), ("amc", 15)):
        with pytest.raises(InvalidInput, match=f"line {line}: .* more than 8 positions; cut"):
            read(kind, FORMATS[kind][1].encode())


# --- anything else --------------------------------------------------------------------------

_AWKWARD = st.sampled_from(
    [b"\n", b"\r", b" ", b"{", b"}", b":", b"#", b"-", b"e9", b"nan", b"0", b"9" * 20, b"\xff",
     b"\x85", b"\xe2\x80\xa8", b"\x00", b"begin\n", b"end\n", b"root", b"1e-400", b"(", b"MOTION\n"]
)  # fmt: skip


@st.composite
def mutations(draw, text):
    """A sound file with some of its bytes replaced, left out, doubled or joined by others."""
    content = text.encode()
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(content)))
        stop = min(len(content), start + draw(st.integers(0, 12)))
        new = draw(st.one_of(_AWKWARD, st.binary(max_size=4), st.just(content[start:stop] * 2)))
        content = content[:start] + new + content[stop:]
    return content


@pytest.mark.parametrize("kind", FORMATS)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_any_change_of_bytes_reads_or_raises_invalid_input(read, kind, data):
    content = data.draw(mutations(FORMATS[kind][1]))
    try:
        motion = read(kind, content)
    except InvalidInput as trouble:
        assert re.match(r"(wrong|sound)\.\w+, line \d+: ", str(trouble))  # noqa: PT017
    else:
        assert np.isfinite(motion.positions).all()
        scale = 1 + np.abs(motion.positions).max()
        lengths = np.broadcast_to(motion.skeleton.bone_lengths, motion.bone_lengths().shape)
        assert np.abs(motion.bone_lengths() - lengths).max() < 1e-6 * scale


@pytest.mark.parametrize("kind", FORMATS)
def test_every_truncation_reads_or_raises_invalid_input(read, kind):
    content = FORMATS[kind][1].encode()
    for length in range(len(content)):
        # Cut at the end of a frame or of a value, what is left is sound.
        with contextlib.suppress(InvalidInput):
            read(kind, content[:length])


# --- skeletons and motions made by hand -----------------------------------------------------

STICK = Skeleton(("root", "tip"), [-1, 0], [[0, 0, 0], [0, 1, 0]])
BAD_SKELETONS = {
    "no joints": (((), [], np.empty((0, 3))), "as many of each"),
    "too few parents": ((("a", "b"), [-1], np.zeros((2, 3))), "as many of each"),
    "flat offsets": ((("a", "b"), [-1, 0], np.zeros((2, 2))), "as many of each"),
    "names twice": ((("a", "a"), [-1, 0], np.zeros((2, 3))), "must all be different"),
    "root with a parent": ((("a", "b"), [0, 0], np.zeros((2, 3))), "an earlier joint each"),
    "later parent": ((("a", "b", "c"), [-1, 2, 0], np.zeros((3, 3))), "an earlier joint each"),
    "two roots": ((("a", "b"), [-1, -1], np.zeros((2, 3))), "an earlier joint each"),
    "NaN": ((("a", "b"), [-1, 0], [[0, 0, 0], [np.nan, 0, 0]]), "finite lengths"),
}
BAD_MOTIONS = {
    "joints": ((STICK, np.zeros((5, 3, 3)), 120), r"must be \(frames, 2, 3\)"),
    "one frame only": ((STICK, np.zeros((2, 3)), 120), r"must be \(frames, 2, 3\)"),
    "no frames": ((STICK, np.zeros((0, 2, 3)), 120), "one frame or more"),
    "NaN": ((STICK, np.full((1, 2, 3), np.nan), 120), "NaN or infinity"),
    "frame rate": ((STICK, np.zeros((1, 2, 3)), 0), "frame_rate=0: must be positive"),
    "unit": ((STICK, np.zeros((1, 2, 3)), 1, -1), "metres_per_unit=-1: must be positive"),
}


@pytest.mark.parametrize("case", BAD_SKELETONS)
def test_bad_skeletons(case):
    arguments, words = BAD_SKELETONS[case]
    with pytest.raises(InvalidInput, match=words):
        Skeleton(*arguments)


@pytest.mark.parametrize("case", BAD_MOTIONS)
def test_bad_motions(case):
    arguments, words = BAD_MOTIONS[case]
    with pytest.raises(InvalidInput, match=words):
        Motion(*arguments)


def test_motions_are_copies_that_nobody_can_write_to():
    positions = np.zeros((1, 2, 3))
    motion = Motion(STICK, positions, 120)
    positions[:] = 7
    assert not motion.positions.any()
    for array in (motion.positions, STICK.offsets, STICK.parents):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 1


def test_bad_arguments():
    motion = Motion(STICK, np.zeros((4, 2, 3)), 120)
    for call, words in (
        (lambda: in_metres(motion), "metres_per_unit=None: the file does not contain the unit"),
        (lambda: in_metres(motion, 0.0), "metres_per_unit=0.0: must be positive"),
        (lambda: with_noise(motion, -1.0, seed=0), "scale=-1.0: must be finite"),
        (lambda: with_noise(motion, np.nan, seed=0), "scale=nan: must be finite"),
        (lambda: from_rows(motion, np.zeros((4, 5))), "6 coordinates per frame"),
        (lambda: synthetic_walker(0), "frames=0: must be 1 or more"),
        (lambda: synthetic_walker(stride=0.0), "stride=0.0: must be positive"),
        (lambda: synthetic_walker(frame_rate=np.inf), "frame_rate=inf: must be positive"),
    ):
        with pytest.raises(InvalidInput, match=words):
            call()


# --- written files --------------------------------------------------------------------------


def test_written_motion_is_read_back(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm.asf").write_text(ASF)
    (tmp_path / "arm_01.amc").write_text(AMC)
    arm = read_motion("arm_01.amc")
    write_motion("again.amc", arm)
    for found in (read_motion("again.amc"), read_motion("again.amc", "again.asf")):
        np.testing.assert_allclose(found.positions, arm.positions, atol=1e-9)
        assert found.skeleton.names == arm.skeleton.names


def test_written_bones_keep_their_directions_and_the_lengths_at_rest(tmp_path):
    write_motion(tmp_path / "walk.amc", synthetic_walker(frames=60))
    # Read once, because files order the joints depth first.
    noisy = with_noise(read_motion(tmp_path / "walk.amc"), 0.03, seed=0)
    write_motion(tmp_path / "noisy.amc", noisy)
    found = read_motion(tmp_path / "noisy.amc")
    lengths = noisy.skeleton.bone_lengths
    np.testing.assert_allclose(found.positions[:, :1], noisy.positions[:, :1])
    np.testing.assert_allclose(found.bone_lengths(), np.tile(lengths, (60, 1)), atol=1e-9)
    parents = noisy.skeleton.parents
    for joint in range(1, len(parents)):
        bone = noisy.positions[:, joint] - noisy.positions[:, parents[joint]]
        again = found.positions[:, joint] - found.positions[:, parents[joint]]
        unit = bone / np.linalg.norm(bone, axis=1, keepdims=True)
        np.testing.assert_allclose(np.sum(again * unit, axis=1), lengths[joint], rtol=1e-6)


def test_frames_without_a_skeleton_are_not_left_behind(tmp_path, monkeypatch):
    walk = synthetic_walker(frames=20)
    calls = []

    def full_at_the_second(_):
        calls.append(1)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_at_the_second)
    with pytest.raises(OSError, match=r"walk\.amc could not"):
        write_motion(tmp_path / "walk.amc", walk)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("names", "words"), [([], "no .asf file"), (["a", "b"], "several .asf")])
def test_frames_need_a_skeleton(tmp_path, names, words):
    (tmp_path / "lonely.amc").write_text(AMC)
    for name in names:
        (tmp_path / f"{name}.asf").write_text(ASF)
    with pytest.raises(InvalidInput, match=f"{words}.*; pass its skeleton as asf"):
        read_motion(tmp_path / "lonely.amc")
