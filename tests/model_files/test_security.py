"""No source file executes the content of files or calls a shell."""

from __future__ import annotations

import ast
from pathlib import Path

import ikpca

SOURCE = Path(ikpca.__file__).parent

#: Modules whose reading of a file, or whose answer, can run code.
MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "yaml", "pty", "code"}
BUILTINS = {"eval", "exec", "compile", "__import__", "input"}
#: By the last name alone: however the module was called, the function is the same.
CALLS = {
    "popen", "execv", "execve", "execvp", "execl", "spawnl", "spawnv", "getoutput",
    "getstatusoutput", "extractall", "unpack_archive", "read_pickle", "unsafe_load", "full_load",
}  # fmt: skip
#: By owner too, because others have innocent ones of that name.
OWNED = {("os", "system"), ("joblib", "load"), ("archive", "extract"), ("ZipFile", "extract")}
#: A pickle names the module of the caller's function.
IMPORTS_BY_NAME = {SOURCE / "kernels" / "callable.py"}


def offences(text, path=None):
    """Yield unsafe statements of a source file, with their lines."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (_at(node, a.name) for a in node.names if a.name.split(".")[0] in MODULES)
        elif isinstance(node, ast.ImportFrom):
            names = {alias.name for alias in node.names}
            owned = {name for owner, name in OWNED if owner == node.module}
            if (node.module or "").split(".")[0] in MODULES or names & (CALLS | owned):
                yield _at(node, node.module)
        elif isinstance(node, ast.Call) and (what := _call(node, path)):
            yield _at(node, what)


def _at(node, what):
    return f"line {node.lineno}: {what}"


def _call(node, path):
    name = _last_name(node.func)
    keywords = {keyword.arg: keyword.value for keyword in node.keywords}
    if isinstance(node.func, ast.Name) and name in BUILTINS:
        return name
    if name in CALLS or (_owner(node.func), name) in OWNED:
        return name
    if "shell" in keywords:
        return "shell"
    # NumPy reads no pickles unless it is told to.
    if "allow_pickle" in keywords and not _is_false(keywords["allow_pickle"]):
        return "allow_pickle"
    if name == "import_module" and path not in IMPORTS_BY_NAME and not _is_ours(node.args[0]):
        return "import_module"
    return None


def _last_name(function):
    return getattr(function, "attr", getattr(function, "id", ""))


def _owner(function):
    return _last_name(function.value) if isinstance(function, ast.Attribute) else ""


def _is_false(value):
    return isinstance(value, ast.Constant) and value.value is False


def _is_ours(name):
    """Return True for a constant, or a name of this package."""
    first = name.values[0] if isinstance(name, ast.JoinedStr) else name
    if not isinstance(first, ast.Constant):
        return False
    return first is name or str(first.value).startswith("ikpca.")


def test_no_file_can_run_code():
    result = {path: list(offences(path.read_text("utf-8"), path)) for path in SOURCE.rglob("*.py")}
    assert not {path: what for path, what in result.items() if what}


OFFENCES = [
    "import pickle", "from pickle import loads", "import yaml", "eval('1')", "exec('1')",
    "import os\nos.system('true')", "from os import system", "import subprocess as s\n"
    "s.run('true', shell=True)", "np.load('x', allow_pickle=True)", "joblib.load('x')",
    "archive.extractall('.')", "archive.extract('x')",
    "compile('1', '', 'eval')", "import_module(name)", "import_module(f'{package}.x')",
    "shutil.unpack_archive('x')",
]  # fmt: skip


def test_unsafe_code_is_detected(subtests):
    for text in OFFENCES:
        with subtests.test(repr(text)):
            assert list(offences(text))


SAFE = [
    "import re\nre.compile('x')", "np.load('x', allow_pickle=False)", "json.load(file)",
    "platform.system()", "grid.extract(image)",
    "import_module('zarr')", "import_module(f'ikpca.{package}')", "subprocess.run(['true'])",
]  # fmt: skip


def test_safe_code_passes(subtests):
    for text in SAFE:
        with subtests.test(repr(text)):
            assert not list(offences(text))
