"""Vulnerability audit and SBOM of the locked packages: ``make audit``.

The SBOM (CycloneDX, JSON) is built from the lock file alone. pip-audit looks the packages up in OSV, or in
PyPI when OSV is unreachable. An audit that covers fewer packages than are locked fails, because pip-audit
prints "No known vulnerabilities found" even when it reached no service.

Exit status: 0 if every package was checked and none is vulnerable, 1 for vulnerabilities, 2 if a package was
not checked; also 0 if no service was reachable and ``--if-reachable`` was given.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
INSTALLED = "requirements-dev.txt"
SHIPPED = "requirements-otel.txt"
HOLES, UNCHECKED = 1, 2


def main(arguments: list[str]) -> int:
    """Write the SBOM, look the packages up, print a report; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--lock", type=Path, default=ROOT / INSTALLED, help="lock file to look up")
    parser.add_argument("--parts", type=Path, default=ROOT / SHIPPED, help="lock file for the SBOM")
    parser.add_argument(
        "--sbom", type=Path, default=ROOT / "build" / "sbom.json", help="output path of the SBOM"
    )
    parser.add_argument("--osv", metavar="URL", help="use only this mirror of OSV: https://.../v1/query")
    parser.add_argument("--if-reachable", action="store_true", help="pass if no service is reachable")
    asked = parser.parse_args(arguments)
    parts = write_parts(asked.parts, asked.sbom)
    print(f"{asked.sbom}: {parts} packages that users get, from {asked.parts.name}")
    found = found_by_first_in_reach(asked.lock, asked.osv)
    status = report(asked.lock, found)
    return 0 if asked.if_reachable and not found else status


def write_parts(lock: Path, sbom: Path) -> int:
    """Write the CycloneDX SBOM of a lock file; return its number of components.

    Raises:
        SystemExit: the SBOM could not be made, or misses a package.
    """
    sbom.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-W", "ignore", "-m", "cyclonedx_py", "requirements", str(lock)]
    command += ["--pyproject", str(ROOT / "pyproject.toml"), "--output-reproducible", "-o", str(sbom)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"the list of parts could not be made: {done.stderr.strip()[-500:]}")
    parts = {part["name"] for part in json.loads(sbom.read_text(encoding="utf-8"))["components"]}
    if missing := locked(lock) - parts:
        sys.exit(f"the list of parts misses {', '.join(sorted(missing))}")
    return len(parts)


def locked(lock: Path, only_here: bool = False) -> set[str]:
    """Return the packages in a lock file; ``only_here``: only those whose markers match this machine."""
    lines = re.findall(r"(?m)^[a-z0-9][^\\\n]*", lock.read_text(encoding="utf-8"))
    needs = [Requirement(line) for line in lines]
    return {need.name for need in needs if not (only_here and need.marker and not need.marker.evaluate())}


def found_by_first_in_reach(lock: Path, osv: str | None) -> dict[str, list[dict[str, Any]]]:
    """Return vulnerabilities by package, from the first service that covers the lock, else the best one."""
    services = [("--vulnerability-service", "osv", "--osv-url", osv)] if osv else None
    best: dict[str, list[dict[str, Any]]] = {}
    for service in services or [("--vulnerability-service", name) for name in ("osv", "pypi")]:
        found = look_up(lock, *service)
        if locked(lock, only_here=True) <= found.keys():
            return found
        best = max(best, found, key=len)
    return best


def look_up(lock: Path, *service: str) -> dict[str, list[dict[str, Any]]]:
    """Return vulnerabilities by package from one service; empty if it is unreachable.

    Raises:
        SystemExit: pip-audit itself failed.
    """
    command = [sys.executable, "-m", "pip_audit", "--disable-pip", "--progress-spinner=off", "--format=json"]
    done = subprocess.run([*command, *service, "-r", str(lock)], capture_output=True, text=True, check=False)
    try:
        answers = json.loads(done.stdout)["dependencies"]
    except ValueError:
        why = (done.stderr.strip().splitlines() or ["without a word"])[-1][:200]
        if not re.search(r"ConnectionError|Timeout|ServiceError|HTTPError", why):
            print(f"NOTHING WAS CHECKED: pip-audit failed: {why}", file=sys.stderr)
            sys.exit(UNCHECKED)
        print(f"{service[1]} did not answer: {why}", file=sys.stderr)
        return {}
    found = {one["name"]: one["vulns"] for one in answers if "skip_reason" not in one}
    print(f"{service[1]} answered for {len(found)} packages", file=sys.stderr)
    return found


def report(lock: Path, found: dict[str, list[dict[str, Any]]]) -> int:
    """Print vulnerabilities and unchecked packages; return the exit status."""
    for name, holes in sorted(found.items()):
        for hole in holes:
            fixed = ", ".join(hole["fix_versions"]) or "no version yet"
            print(f"{name}: {' '.join([hole['id'], *hole.get('aliases', ())])}, fixed in {fixed}")
    wanted = locked(lock, only_here=True)
    if missing := wanted - found.keys():
        all_or_some = "NOTHING WAS CHECKED" if len(missing) == len(wanted) else "NOT EVERYTHING WAS CHECKED"
        print(f"{all_or_some}: {len(missing)} of {len(wanted)} packages of {lock.name} were not looked up.")
        print("Repeat this where OSV or PyPI can be reached, or name a mirror: make audit OSV=URL")
        return UNCHECKED
    holes = sum(map(len, found.values()))
    print(f"{len(wanted)} packages of {lock.name} were looked up: {holes or 'no'} known holes")
    return HOLES if holes else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
