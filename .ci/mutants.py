"""Mutation testing: change the numerical core at random, one place at a time; a test must fail.

Mutants are made in a temporary copy of the sources and tested by the tests in TARGETS that
``make test`` runs. Prints the outcome of each; exit status 1 if more than ``--survivors`` survive.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: Sources and their tests, those that fail soonest first.
TARGETS = {
    "src/ikpca/solvers/kha_pass.py": [
        "tests/solvers/test_block_form.py",
        "tests/solvers/test_hebbian_passes.py",
        "tests/solvers/test_hebbian_theory.py",
        "tests/solvers/test_divergence.py",
        "tests/estimators/test_kernel_pca.py",
    ],
    "src/ikpca/solvers/krylov.py": [
        "tests/solvers/test_krylov.py",
        "tests/solvers/test_contract.py",
        "tests/streams/test_from_batch.py",
        "tests/estimators/test_degenerate_rows.py",
        "tests/estimators/test_kernel_pca.py",
        "tests/estimators/test_bad_input.py",
        "tests/estimators/test_checkpoints.py",
        "tests/solvers/test_guards.py",
        "tests/solvers/test_precision.py",
    ],
    "src/ikpca/streams/incremental.py": [
        "tests/streams/test_incremental.py",
        "tests/estimators/test_incremental_kernel_pca.py",
        "tests/streams/test_bad_batches.py",
        "tests/streams/test_drift.py",
        "tests/model_files/test_model_files.py",
        "tests/solvers/test_guards.py",
        "tests/estimators/test_degenerate_rows.py",
        "tests/estimators/test_compress.py",
    ],
    "src/ikpca/gram/centering.py": [
        "tests/gram/test_prefetch.py",
        "tests/gram/test_sources.py",
        "tests/solvers/test_hebbian_passes.py",
        "tests/estimators/test_kernel_pca.py",
        "tests/estimators/test_bad_input.py",
    ],
}
#: Functions that estimate memory or tune the speed, where another number is not an error.
ESTIMATES = ("plan", "plan_krylov", "_max_blocks", "_n_landmarks", "block_size")
COPIED = ("src", "tests", "conftest.py", "pyproject.toml")
#: Seconds for the tests of one mutant, which may loop forever.
TIMEOUT = 600

COMPARISONS = {
    ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
#: A product becomes a sum: division by signs, which are 1 or -1, would change nothing.
OPERATORS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.MatMult: ast.Mult,
}  # fmt: skip
Change = tuple[str, Callable[[ast.AST], ast.AST]]


def changes(node: ast.AST) -> Iterator[Change]:
    """Yield name and function of every change that applies to a node."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
        yield "flip comparison", _flip_comparison
    if isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in OPERATORS:
        yield "change operator", _change_operator
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield "add 1", lambda constant: ast.Constant(constant.value + 1)
        yield "subtract 1", lambda constant: ast.Constant(constant.value - 1)
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        yield "negate condition", _negate
    if isinstance(node, ast.Call) and len(node.args) > 1 and not _is_symmetric(node):
        yield "swap arguments", _swap
    if _is_effect(node):
        yield "drop statement", lambda statement: ast.Pass()


def _flip_comparison(node: ast.AST) -> ast.AST:
    node.ops[0] = COMPARISONS[type(node.ops[0])]()
    return node


def _change_operator(node: ast.AST) -> ast.AST:
    node.op = OPERATORS[type(node.op)]()
    return node


def _negate(node: ast.AST) -> ast.AST:
    node.test = ast.UnaryOp(ast.Not(), node.test)
    return node


def _swap(node: ast.AST) -> ast.AST:
    node.args[:2] = node.args[1::-1]
    return node


def _is_symmetric(call: ast.Call) -> bool:
    """Return True if exchanging the first two arguments changes nothing."""
    function, first, second = map(ast.unparse, (call.func, *call.args[:2]))
    return first == second or function.removeprefix("np.") in ("max", "min", "maximum", "minimum")


def _is_effect(node: ast.AST) -> bool:
    """Return True for statements without which the others still run."""
    if isinstance(node, ast.Assign):
        return isinstance(node.targets[0], ast.Subscript)
    return isinstance(node, ast.AugAssign) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    )


def mutants(source: str, number: int, seed: int) -> list[tuple[str, str]]:
    """Return descriptions and sources of mutants of the functions' bodies."""
    tree = ast.parse(source)
    functions = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name not in ESTIMATES
    ]
    places = {
        (node.lineno, node.col_offset, name): (node, name, change)
        for function in functions
        for statement in function.body
        for node in ast.walk(statement)
        for name, change in changes(node)
    }
    chosen = random.Random(seed).sample(sorted(places), number)
    return [_mutant(tree, *places[place]) for place in chosen]


def _mutant(
    tree: ast.Module, node: ast.AST, name: str, change: Callable[[ast.AST], ast.AST]
) -> tuple[str, str]:
    new = ast.copy_location(change(copy.deepcopy(node)), node)
    memo = {id(node): new}
    changed = ast.fix_missing_locations(copy.deepcopy(tree, memo))
    before = ast.unparse(node).partition("\n")[0]
    after = ast.unparse(new).partition("\n")[0]
    return f"{node.lineno}:{node.col_offset}: {name}: {before}  →  {after}", ast.unparse(changed)


def outcome(folder: Path, path: str, source: str) -> str:
    """Return "killed" if a test fails with the changed source, "timed out" or "survived"."""
    original = (folder / path).read_text(encoding="utf-8")
    (folder / path).write_text(source, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "not slow", "-p",
               "no:cacheprovider", *TARGETS[path]]  # fmt: skip
    paths = [str(folder / "src"), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    try:
        result = subprocess.run(command, cwd=folder, env=environment, capture_output=True,
                              timeout=TIMEOUT, check=False)  # fmt: skip
    except subprocess.TimeoutExpired:
        return "timed out"
    finally:
        (folder / path).write_text(original, encoding="utf-8")
    return "killed" if result.returncode else "survived"


def main() -> int:
    """Test the mutants and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "paths", nargs="*", default=[*TARGETS], help="some of the sources in TARGETS"
    )
    parser.add_argument("--per-file", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--survivors", type=int, default=4)
    options = parser.parse_args()
    outcomes: list[str] = []
    with tempfile.TemporaryDirectory(prefix="ikpca-mutants-") as name:
        folder = Path(name)
        for part in COPIED:
            copy_part = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
            copy_part(ROOT / part, folder / part)
        for path in options.paths:
            source = (ROOT / path).read_text(encoding="utf-8")
            if outcome(folder, path, source) != "survived":
                sys.exit(f"{path}: its tests fail without a mutation")
            for description, changed in mutants(source, options.per_file, options.seed):
                outcomes.append(outcome(folder, path, changed))
                print(f"{outcomes[-1]:9} {Path(path).name}:{description}", flush=True)
    survivors = outcomes.count("survived")
    print(f"{len(outcomes) - survivors} of {len(outcomes)} mutants killed")
    return int(survivors > options.survivors)


if __name__ == "__main__":
    sys.exit(main())
