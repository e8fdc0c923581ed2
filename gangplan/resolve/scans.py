"""Reports of image scanners below images/scans/: how many critical and high vulnerabilities each image has.

Supported are the JSON reports of Trivy (`trivy image --format json`, SchemaVersion 2: Metadata.RepoDigests,
Results[].Vulnerabilities[].Severity) and of Clair v4 (`clairctl report --out json`: manifest_hash,
vulnerabilities{}.normalized_severity, package_vulnerabilities).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from gangplan.findings import Finding, Location
from gangplan.records import dataclass
from gangplan.rules.security import SCAN_UNREADABLE

_Form = TypeVar("_Form")

SCANS = "images/scans"

DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T")
HELP = "Write the report with `trivy image --format json IMAGE@DIGEST` or `clairctl report --out json IMAGE`."


@dataclass(frozen=True, slots=True, order=True)
class Scan:
    """What a scanner found in the image of a digest: distinct vulnerabilities, each counted once.

    `made` is the day of the report, as YYYY-MM-DD; empty for reports of Clair, which state none.
    """

    digest: str
    critical: int
    high: int
    made: str = ""


def read_image_scan_results(root: Path) -> tuple[Scan, ...]:
    """Return the images of all readable reports, by digest; of several reports of one image the worst."""
    worst: dict[str, Scan] = {}
    for scan in _read_image_scan_folder(root)[0]:
        known = worst.get(scan.digest)
        if known is None or (scan.critical, scan.high) > (known.critical, known.high):
            worst[scan.digest] = scan
    return tuple(worst[digest] for digest in sorted(worst))


def list_days_of_scan_reports(root: Path) -> dict[str, tuple[str, str]]:
    """Return the day of the newest report of each image, by digest, and the report's file."""
    newest: dict[str, tuple[str, str]] = {}
    for path in sorted((root / SCANS).glob("*.json")):
        for scan in _parse_image_scan_report(path, path.stat().st_mtime_ns)[0]:
            newest[scan.digest] = max(newest.get(scan.digest, ("", "")), (scan.made, f"{SCANS}/{path.name}"))
    return newest


def check_scans(root: Path) -> list[Finding]:
    """Report scan reports that identify no image: unreadable evidence proves nothing."""
    return list(_read_image_scan_folder(root)[1])


def _read_image_scan_folder(root: Path) -> tuple[list[Scan], list[Finding]]:
    scans: list[Scan] = []
    wrong: list[Finding] = []
    for path in sorted((root / SCANS).glob("*.json")):
        found, problem = _parse_image_scan_report(path, path.stat().st_mtime_ns)
        scans += found
        if problem:
            wrong.append(Finding(SCAN_UNREADABLE, Location(f"{SCANS}/{path.name}", 1, 1), problem, HELP))
    return scans, wrong


@cache
def _parse_image_scan_report(path: Path, _changed_ns: int) -> tuple[tuple[Scan, ...], str]:
    """Return the scans of one report and what is wrong with it; cached until the file changes."""
    try:
        report = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as problem:
        return (), f"the report is not JSON: {problem}"
    try:
        found = tuple(_list_digests_in_image_scan(report)) if isinstance(report, dict) else ()
    except TypeError as problem:
        return (), f"the report is not in the form of Trivy or Clair: {problem}"
    return found, "" if found else "the report names no image by digest, so it is evidence for none"


def _list_digests_in_image_scan(report: dict[str, Any]) -> Iterator[Scan]:
    """Yield one entry for each digest that the report is about. Raises TypeError for another form."""
    if "SchemaVersion" in report:  # Trivy omits Results if there are none
        texts = [
            str(report.get("ArtifactName", "")),
            *map(
                str,
                _read_image_scan_field(_read_image_scan_field(report, "Metadata", dict), "RepoDigests", list),
            ),
        ]
        severities = {
            _read_image_scan_field(one, "VulnerabilityID", str): _read_image_scan_field(one, "Severity", str)
            for result in _read_image_scan_field(report, "Results", list)
            for one in _read_image_scan_field(result, "Vulnerabilities", list)
        }
    elif report.get("vulnerabilities") is not None:
        texts = [_read_image_scan_field(report, "manifest_hash", str)]
        severities = {
            _read_image_scan_field(one, "name", str): _read_image_scan_field(one, "normalized_severity", str)
            for one in _read_image_scan_field(report, "vulnerabilities", dict).values()
        }
    else:
        return
    count = Counter(severity.upper() for severity in severities.values())
    for digest in sorted({digest for text in texts for digest in DIGEST.findall(text)}):
        yield Scan(digest, count["CRITICAL"], count["HIGH"], _read_day_of_report(report))


def _read_day_of_report(report: dict[str, Any]) -> str:
    """Return the day of a report of Trivy (CreatedAt, RFC 3339), or an empty text."""
    made = report.get("CreatedAt")
    return made[:10] if isinstance(made, str) and _DAY.match(made) else ""


def _read_image_scan_field(whole: Any, name: str, form: type[_Form]) -> _Form:
    """Return a field of a part of a report; empty if it is omitted. Raises TypeError for another type."""
    if not isinstance(whole, dict):
        raise TypeError(f"what should have {name} is not an object")
    found = whole.get(name)
    if found is not None and not isinstance(found, form):
        raise TypeError(f"{name} has another form")
    return form() if found is None else found
