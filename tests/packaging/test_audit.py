"""The audit of dependencies: findings fail, silence is told and fails nothing."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).resolve().parents[2] / ".ci" / "audit.py"
CLEAN = {"name": "numpy", "version": "2.0", "vulns": []}
KNOWN = {"name": "old", "version": "1.0", "vulns": [{"id": "CVE-1", "fix_versions": ["1.1"]}]}
SKIPPED = {"name": "new", "skip_reason": "not found"}


@pytest.fixture(scope="module")
def audit():
    if not SCRIPT.exists():
        pytest.skip("the scripts of continuous integration are not here")
    spec = importlib.util.spec_from_file_location("audit", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("packages", "status", "said"), [
    ([CLEAN, KNOWN, SKIPPED], 1, "old 1.0: CVE-1 (mended in 1.1)"),
    ([CLEAN, SKIPPED], 0, "1 of 2 packages audited, none"),
    ([SKIPPED], 0, "audit skipped: 0 of 1 packages audited"),
    ([], 0, "audit skipped"),
])  # fmt: skip
def test_reports_are_judged(audit, packages, status, said):
    found, told = audit.judged({"dependencies": packages})
    assert found == status
    assert said in told


def test_no_audit_is_told_and_fails_nothing(audit, monkeypatch, capsys):
    monkeypatch.setattr(audit, "_report", lambda folder: "no network")
    assert audit.main() == 0
    assert capsys.readouterr().out == "audit skipped: no network\n"
