"""Bad input: one sentence, an exit status, and no incomplete files."""

from __future__ import annotations

import errno
import os

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")

from tests.cli.saying import fails, succeeds
from tests.command_line import ikpca


@pytest.fixture
def fitted(files):
    succeeds("fit", "rows.csv", "--out", "m.ikpca", "-n", 2, "-q")
    return files


def listing(folder):
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


CSVS = {
    "gap": ("a,b\n1,2\n3,\n", ["bad.csv, line 3, column 'b'", "is empty"]),
    "text": ("a,b\n1,2\n3,4\n5,many\n", ["line 4, column 'b'", "'many'"]),
    "text without names": ("1,2\n3,x\n", ["line 2, column 2:", "'x'"]),
    "nan": ("1,2\nnan,4\n", ["line 2, column 1", "'nan'"]),
    "short line": ("a,b\n1,2\n3\n", ["line 3, column 'b'", "is empty"]),
    "long line": ("a,b\n1,2\n3,4,5\n", ["line 3", "more cells"]),
    "long line after many": ("a,b\n" + "1,2\n" * 200 + "3,4,5\n", ["line 202", "more cells"]),
    "comma as point": ('a,b\n1,2\n"1,5",2\n', ["line 3, column 'a'", "point"]),
    "point beside decimal commas": ("a;b\n1,5;2\n1.234;4\n", ["line 3, column 'a'", "'1.234'"]),
    "thousands": ("a;b\n1,5;2\n1.234,5;4\n", ["line 3, column 'a'", "'1.234,5'"]),
    "name twice": ("a,a\n1,2\n", ["bad.csv", "'a'"]),
    "no name": ("a,\n1,2\n", ["line 2", "names"]),
    "names only": ("a,b\n", ["bad.csv", "no rows"]),
    "empty": ("", ["bad.csv", "no rows"]),
    "empty cells": (",,\n,,\n", ["bad.csv", "no rows"]),
    "only text": ("a,b\nx,y\nz,w\n", ["bad.csv", "columns 'a', 'b'", "--drop a,b"]),
    "binary": ("PK\3\4\0\0", ["bad.csv", "not a text file"]),
    "open quote": ('a,b\n"1,2\n3,4\n', ["bad.csv", "cannot be read"]),
    "many columns": (",".join(map(str, range(10**6))) + "\n", ["bad.csv", "columns", ".npy"]),
}


def test_error_in_a_table_names_line_and_column(files, subtests):
    for case, (content, told) in CSVS.items():
        (files / "bad.csv").write_text(content)
        before = listing(files)
        with subtests.test(case):
            sentence = fails("fit", "bad.csv", "--out", "m.ikpca")
            assert sentence.startswith("ikpca fit: ")
            assert all(part in sentence for part in told)
            assert listing(files) == before


INPUTS = {
    "missing.npy": (None, "no such file"),
    "rows.xyz": (lambda path: path.write_text("1"), "'.xyz' is unknown"),
    "rows": (lambda path: path.write_text("1"), "no suffix"),
    "broken.npy": (lambda path: path.write_bytes(b"\x93NUMPY"), "cannot be read"),
    "broken.npz": (lambda path: path.write_bytes(b"PK\x03\x04"), "cannot be read"),
    "broken.parquet": (lambda path: path.write_text("a,b"), "cannot be read"),
    "broken.xlsx": (lambda path: path.write_text("a,b"), "cannot be read"),
    "broken.csv.gz": (lambda path: path.write_text("a,b"), "cannot be read"),
    "folder": (lambda path: path.mkdir(), "is a folder"),
    "picture.png": (lambda path: path.write_bytes(b"1"), "'.png' is unknown"),
    "stack.npy": (lambda path: np.save(path, np.ones((4, 3, 2))), "shape (4, 3, 2)"),
    "flat.npy": (lambda path: np.save(path, np.ones(3)), "shape (3,)"),
    "text.npy": (lambda path: np.save(path, np.array([["a"]])), "not numbers"),
    "nan.npy": (lambda path: np.save(path, np.full((9, 2), np.nan)), "NaN"),
    "one.npy": (lambda path: np.save(path, np.ones((1, 2))), "minimum of 2"),
    "walk.amc": (lambda path: path.write_text("1"), "'.amc' is unknown"),
}


def test_an_input_that_cannot_be_read(files, subtests):
    for name, (make, told) in INPUTS.items():
        if make is not None:
            make(files / name)
        before = listing(files)
        with subtests.test(name):
            assert told in fails("fit", name, "--out", "m.ikpca")
            assert listing(files) == before


def test_a_member_must_be_named(files):
    np.savez("two.npz", first=np.ones((3, 2)), second=np.ones((3, 2)))
    assert "two.npz:first" in fails("fit", "two.npz", "-o", "m.ikpca")
    assert "two.npz:second" in fails("fit", "two.npz:third", "-o", "m.ikpca")


def test_columns_are_those_of_the_model(fitted):
    np.save("wide.npy", np.ones((3, 7)))
    sentence = fails("transform", "m.ikpca", "wide.npy", "-o", "p.npy")
    assert "wide.npy: has 7 columns, and m.ikpca needs 6" in sentence
    assert "has 7 columns, and m.ikpca needs 2" in fails(
        "inverse", "m.ikpca", "wide.npy", "-o", "p.npy"
    )
    content = (fitted / "rows.csv").read_text().replace("a,b,c", "A,b,C")
    (fitted / "other.csv").write_text(content)
    sentence = fails("transform", "m.ikpca", "other.csv", "-o", "p.npy")
    assert "other.csv: has no columns 'a', 'c', which m.ikpca needs" in sentence
    assert not (fitted / "p.npy").exists()


@pytest.mark.parametrize(
    ("content", "told"), [(None, "does not exist"), (b"no model", "cannot be read")]
)
def test_file_that_is_not_a_model(content, told, files):
    if content is not None:
        (files / "m.ikpca").write_bytes(content)
    for verb in (["transform", "m.ikpca", "rows.npy", "-o", "p.npy"],
                 ["inverse", "m.ikpca", "rows.npy", "-o", "p.npy"],
                 ["info", "m.ikpca"]):  # fmt: skip
        assert told in fails(*verb)


def test_checkpoint_is_named_in_the_error(files):
    settings = ("-n", 2, "-s", "kha", "--max-iter", 2, "--checkpoint", "c.ikpca", "-q")
    succeeds("fit", "rows.npy", "-o", "m.ikpca", *settings)
    assert "it is a checkpoint, not a model" in fails("info", "c.ikpca")


def test_model_without_the_method(files):
    succeeds("cluster", "rows.npy", "-c", 2, "-o", "l.npy", "--save-model", "c.ikpca", "-q")
    assert "has no transform" in fails("transform", "c.ikpca", "rows.npy", "-o", "p.npy")


OUTS = {
    "no/such/m.npy": "there is no folder 'no/such'",
    "rows.npy/m.npy": "is not a folder 'rows.npy'",
    "m.xyz": "'.xyz' is unknown",
    "rows": "no suffix",
    "p.png": "'.png' is unknown",
    "p.amc": "'.amc' is unknown",
}


def test_unwritable_output_is_rejected_before_the_work(fitted, monkeypatch, subtests):
    monkeypatch.setattr("ikpca.KernelPCA.transform", None)
    before = listing(fitted)
    for out, told in OUTS.items():
        with subtests.test(out):
            assert told in fails("transform", "m.ikpca", "rows.npy", "-o", out)
            assert listing(fitted) == before


#: Every command that writes: its inputs, and its options for further outputs.
WRITING = {
    "fit": (["rows.csv"], ["--checkpoint"]),
    "transform": (["m.ikpca", "rows.csv"], []),
    "inverse": (["m.ikpca", "p.npz"], []),
    "plot": (["m.ikpca", "rows.csv"], []),
    "detect": (["rows.csv", "new.csv"], ["--plot", "--save-model"]),
    "cluster": (["rows.csv", "--n-clusters", "2"], ["--save-model"]),
}


@pytest.fixture
def precious(files):
    """Files that cannot be read."""
    for name in ("m.ikpca", "p.npz", "new.csv", "old"):
        (files / name).write_text(name)
    return files


def test_every_command_with_an_output_protects_files():
    from typer.main import get_command

    from ikpca.cli.app import app

    options = {
        name: {flag for parameter in command.params for flag in parameter.opts}
        for name, command in get_command(app).commands.items()
    }
    assert {name for name, flags in options.items() if "--out" in flags} == {*WRITING}
    assert {name for name, flags in options.items() if "--force" in flags} == {*WRITING}


@pytest.mark.parametrize("verb", WRITING)
def test_an_input_is_never_overwritten(verb, precious, subtests):
    before = listing(precious)
    words, more = WRITING[verb]
    paths = [word for word in words if os.path.isfile(word)]
    outputs = [["-o", path] for path in paths]
    outputs += [["-o", "fresh.csv", flag, paths[0]] for flag in more]
    for options in outputs:
        with subtests.test(" ".join(options)):
            assert "is an input" in fails(verb, *words, *options, "--force", code=2)
    assert listing(precious) == before


@pytest.mark.skipif(os.name == "nt", reason="links as on Unix")
def test_input_is_protected_under_all_of_its_names(precious, subtests):
    os.symlink("rows.csv", "link")
    os.link("rows.csv", "twin")
    before = listing(precious)
    names = {
        "rows.csv": ["./rows.csv", str(precious / "rows.csv"), "link", "twin"],
        "p.npz:a": ["p.npz", "p.npz:b"],
    }
    for source, outs in names.items():
        for out in outs:
            with subtests.test(f"{source} {out}"):
                assert "is an input" in fails("fit", source, "-o", out, "--force", code=2)
    assert listing(precious) == before


@pytest.mark.parametrize("verb", WRITING)
def test_an_existing_file_is_overwritten_only_with_force(verb, precious, subtests):
    before = listing(precious)
    words, more = WRITING[verb]
    for options in (["-o", "old"], *(["-o", "fresh.csv", flag, "old"] for flag in more)):
        with subtests.test(" ".join(options)):
            sentence = fails(verb, *words, *options, code=2)
            assert "old: exists already" in sentence
            assert "--force" in sentence
            forced = ikpca(verb, *words, *options, "--force")
            assert "exists already" not in forced.err
    for flag in more:
        assert "two outputs" in fails(verb, *words, "-o", "fresh", flag, "./fresh", code=2)
    old = {path for path in before if path != "old"}
    assert {path: listing(precious)[path] for path in old} == {path: before[path] for path in old}


def test_a_folder_is_not_a_model_file(files):
    (files / "models").mkdir()
    assert "is a folder" in fails("fit", "rows.npy", "-o", "models", code=2)


def test_a_file_is_overwritten_with_force(fitted):
    transform = ("transform", "m.ikpca", "rows.csv", "-o", "p.npy", "-q")
    succeeds(*transform)
    succeeds("fit", "rows.csv", "--out", "m.ikpca", "-n", 3, "-q", "--force")
    succeeds(*transform, "--force")
    assert np.load("p.npy").shape == (40, 3)


@pytest.mark.parametrize("verb", ["fit", "npy", "npz", "csv"])
def test_full_disk_keeps_the_old_file(verb, fitted, monkeypatch):
    succeeds("transform", "m.ikpca", "rows.npy", "-o", "p.npy", "-q")
    commands = {
        "fit": ["fit", "rows.npy", "-n", 3, "--force", "-o", "m.ikpca"],
        "npy": ["transform", "m.ikpca", "rows.npy", "--force", "-o", "p.npy"],
        "npz": ["transform", "m.ikpca", "rows.npy", "-o", "p.npz"],
        "csv": ["transform", "m.ikpca", "rows.npy", "-o", "p.csv"],
    }
    before = listing(fitted)

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    sentence = fails(*commands[verb])
    assert f"{commands[verb][-1]} could not be written" in sentence
    assert "No space left on device" in sentence
    assert ".part" not in sentence
    assert listing(fitted) == before


def test_too_little_memory(files, monkeypatch):
    def fit(*_):
        raise MemoryError

    monkeypatch.setattr("ikpca.KernelPCA.fit", fit)
    assert "--max-memory" in fails("fit", "rows.npy", "-o", "m.ikpca")


@pytest.mark.parametrize(("package", "suffix"), [("pyarrow", "parquet"), ("openpyxl", "xlsx")])
def test_missing_package_is_reported_with_the_install_command(package, suffix, files, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, package, None)
    (files / f"rows.{suffix}").write_bytes(b"PAR1")
    assert "pip install 'ikpca[cli]'" in fails("fit", f"rows.{suffix}", "-o", "m.ikpca")


MISTAKES = {
    "kernel": (["--kernel", "guassian-rbf"], "'guassian-rbf'"),
    "solver": (["--eigen-solver", "krilov"], "'krylov'"),
    "components": (["-n", "some"], "'some'"),
    "no components": (["-n", "0"], "--n-components=0: must be"),
    "negative": (["--gamma", "-1"], "--gamma=-1: must not be negative"),
    "tol": (["--tol", "-1"], "--tol=-1.0"),
    "passes": (["--max-iter", "0"], "--max-iter=0"),
    "memory": (["--max-memory", "lots"], "--max-memory='lots'"),
    "threads": (["--n-jobs", "0"], "--n-jobs=0"),
    "needs a number": (["--eigen-solver", "kha", "-n", "0.5"], "--n-components=0.5"),
    "option": (["--gama", "1"], "--gamma"),
    "out": (["--out"], "--out"),
}


def test_invalid_command_lines(files, subtests):
    before = listing(files)
    for case, (arguments, told) in MISTAKES.items():
        with subtests.test(case):
            assert told in fails("fit", "rows.npy", "-o", "m.ikpca", *arguments, code=2)
            assert listing(files) == before


def test_unknown_command_suggests_the_nearest():
    said = ikpca("trasform")
    assert said.code == 2
    assert "Did you mean 'transform'?" in said.err


def test_missing_argument_is_named(files):
    assert "--out" in fails("fit", "rows.npy", code=2)
    assert "INPUT" in fails("fit", code=2)
    assert "--n-clusters" in fails("cluster", "rows.npy", "-o", "l.npy", code=2)
