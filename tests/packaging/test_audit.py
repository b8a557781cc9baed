"""Audit of the dependencies: findings fail; an audit that is not possible is reported."""

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
        pytest.skip("not in the source distribution")
    spec = importlib.util.spec_from_file_location("audit", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("packages", "status", "message"), [
    ([CLEAN, KNOWN, SKIPPED], 1, "old 1.0: CVE-1 (fixed in 1.1)"),
    ([CLEAN, SKIPPED], 0, "1 of 2 packages audited, no known"),
    ([SKIPPED], 0, "audit skipped: 0 of 1 packages audited"),
    ([], 0, "audit skipped"),
])  # fmt: skip
def test_summary_of_a_report(audit, packages, status, message):
    actual_status, actual_message = audit.summarize({"dependencies": packages})
    assert actual_status == status
    assert message in actual_message


def test_without_network_the_audit_is_skipped(audit, monkeypatch, capsys):
    monkeypatch.setattr(audit, "run_pip_audit", lambda folder: "no network")
    assert audit.main() == 0
    assert capsys.readouterr().out == "audit skipped: no network\n"
