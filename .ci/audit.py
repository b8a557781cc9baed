"""Check the installed packages for known vulnerabilities with pip-audit.

Exit status 1 if there are any. If pip-audit cannot be installed or the service does not answer,
the audit is skipped with a message and exit status 0.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

#: Seconds for the installation and for the queries.
_TIMEOUT = 300


def main() -> int:
    """Run the audit and return the exit status."""
    with tempfile.TemporaryDirectory(prefix="ikpca-audit-") as folder:
        report = run_pip_audit(Path(folder))
    if isinstance(report, str):
        print(f"audit skipped: {report}")
        return 0
    status, message = summarize(report)
    print(message)
    return status


def run_pip_audit(folder: Path) -> dict[str, list[dict[str, object]]] | str:
    """Run pip-audit in its own environment; return its report, or the reason why there is none."""
    venv.create(folder / "venv", with_pip=True)
    python, requirements, output = (
        folder / name for name in ("venv/bin/python", "requirements", "report")
    )
    freeze = [sys.executable, "-m", "pip", "freeze", "--exclude-editable"]
    requirements.write_text(
        subprocess.run(freeze, capture_output=True, text=True, check=True).stdout
    )
    for command in (
        ["pip", "install", "--quiet", "--disable-pip-version-check", "pip-audit"],
        ["pip_audit", "--requirement", requirements, "--no-deps", "--disable-pip",
         "--progress-spinner", "off", "--format", "json", "--output", output],
    ):  # fmt: skip
        try:
            result = subprocess.run(
                [python, "-m", *command], capture_output=True, text=True, timeout=_TIMEOUT,
                check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"no answer within {_TIMEOUT} s"
        # With findings, pip-audit fails and writes its report.
        if result.returncode and not output.exists():
            return (result.stderr.strip().splitlines() or ["pip-audit failed"])[-1]
    return json.loads(output.read_text())


def summarize(report: dict[str, list[dict[str, object]]]) -> tuple[int, str]:
    """Return the exit status and the message for a report."""
    packages = report.get("dependencies", [])
    audited = [package for package in packages if "vulns" in package]
    vulnerable = [package for package in audited if package["vulns"]]
    count = f"{len(audited)} of {len(packages)} packages audited"
    if not audited:
        return 0, f"audit skipped: {count}; the service does not list any of them"
    if not vulnerable:
        return 0, f"audit: {count}, no known vulnerabilities"
    lines = [f"audit: {count}, {len(vulnerable)} with known vulnerabilities"]
    for package in vulnerable:
        findings = ", ".join(map(_describe, package["vulns"]))
        lines.append(f"{package['name']} {package['version']}: {findings}")
    return 1, "\n".join(lines)


def _describe(vulnerability: dict[str, object]) -> str:
    versions = ", ".join(map(str, vulnerability.get("fix_versions", []))) or "no version"
    return f"{vulnerability['id']} (fixed in {versions})"


if __name__ == "__main__":
    sys.exit(main())
