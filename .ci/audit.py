"""Ask pip-audit for known vulnerabilities of what is installed here.

Fails when one is found. Where pip-audit cannot be had, or nobody answers for any package, it says
so and fails nothing: an audit that did not take place is no reason to stop a build, and must not
pass for a clean one either.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

#: Seconds for the installation and for the questions; a network that swallows packets is no answer.
_PATIENCE = 300


def main() -> int:
    """Exit status: 1 for findings, 0 for none and for no audit."""
    with tempfile.TemporaryDirectory(prefix="ikpca-audit-") as folder:
        report = _report(Path(folder))
    if isinstance(report, str):
        sys.stdout.write(f"audit skipped: {report}\n")
        return 0
    status, said = judged(report)
    sys.stdout.write(f"{said}\n")
    return status


def judged(report: dict[str, list[dict[str, object]]]) -> tuple[int, str]:
    """Exit status, and what is to be said of pip-audit's report."""
    packages = report.get("dependencies", [])
    answered = [package for package in packages if "vulns" in package]
    found = [f"{package['name']} {package['version']}: {', '.join(map(_words, package['vulns']))}"
             for package in answered if package["vulns"]]  # fmt: skip
    counted = f"{len(answered)} of {len(packages)} packages audited"
    if found:
        return 1, "\n".join([f"audit: {counted}, {len(found)} with known vulnerabilities", *found])
    if not answered:
        return 0, f"audit skipped: {counted}; the service knows none of them"
    return 0, f"audit: {counted}, none with a known vulnerability"


def _words(vulnerability: dict[str, object]) -> str:
    mended = ", ".join(map(str, vulnerability.get("fix_versions", []))) or "no version yet"
    return f"{vulnerability['id']} (mended in {mended})"


def _report(folder: Path) -> dict[str, list[dict[str, object]]] | str:
    """pip-audit's answer, from an environment of its own, or why there is none."""
    venv.create(folder / "venv", with_pip=True)
    own, listed, answer = (folder / name for name in ("venv/bin/python", "installed", "answer"))
    steps = (
        [own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "pip-audit"],
        [own, "-m", "pip_audit", "--requirement", listed, "--no-deps", "--disable-pip",
         "--progress-spinner", "off", "--format", "json", "--output", answer],
    )  # fmt: skip
    frozen = [sys.executable, "-m", "pip", "freeze", "--exclude-editable"]
    listed.write_text(subprocess.run(frozen, capture_output=True, text=True, check=True).stdout)
    for step in steps:
        try:
            done = subprocess.run(step, capture_output=True, text=True, timeout=_PATIENCE,
                                  check=False)  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"no answer within {_PATIENCE} s"
        if done.returncode and not answer.exists():
            return (done.stderr.strip().splitlines() or ["pip-audit said nothing"])[-1]
    return json.loads(answer.read_text())


if __name__ == "__main__":
    sys.exit(main())
