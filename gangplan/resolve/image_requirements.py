"""Requirements of the catalog for its images: an owner, cleared licences, a recent scan."""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection, Iterator
from pathlib import Path

from gangplan.findings import Finding, Location
from gangplan.resolve.scans import list_days_of_scan_reports
from gangplan.rules.images import IMAGE_LICENCE, IMAGE_OWNER, IMAGE_SCAN_MISSING, IMAGE_SCAN_OLD
from gangplan.source import Document
from gangplan.spec.catalog import Image, ImageCatalog, Requirements

_WORDS = re.compile(r"[()]|[^\s()]+")
# The parser is recursive, and people write only a handful of brackets.
_DEEPEST = 20


def check_catalog_requirements(catalog: ImageCatalog, document: Document) -> list[Finding]:
    """Return findings about images that omit what the catalog requires, or have what it does not allow."""
    wanted = catalog.requirements
    if wanted is None:
        return []
    return [
        one
        for name, image in catalog.images.items()
        for one in _check_catalog_image_requirements(name, image, wanted, document)
    ]


def _check_catalog_image_requirements(
    name: str, image: Image, wanted: Requirements, document: Document
) -> Iterator[Finding]:
    where = document.where(("images", name), key=True)
    if wanted.owner and image.owner is None:
        message = f"image '{name}' names no owner, which the catalog requires"
        yield Finding(IMAGE_OWNER, where, message, "Add owner: with the address of who builds it.")
    if wanted.scan_days is not None and image.scan is None:
        message = (
            f"image '{name}' has no scan, and the catalog requires one of the last {wanted.scan_days} days"
        )
        help = "Scan the build of this digest, and add scan: {date: 2026-11-02}."
        yield Finding(IMAGE_SCAN_MISSING, where, message, help)
    if not wanted.licences:
        return
    allowed = ", ".join(wanted.licences)
    if image.licence is None:
        message = f"image '{name}' states no licence, and the catalog allows only {allowed}"
        yield Finding(IMAGE_LICENCE, where, message, "Add licence: with an SPDX expression.")
    elif refused := find_refused_spdx_licences(image.licence, wanted.licences):
        message = (
            f"licence {' and '.join(refused)} of image '{name}' is not one that the catalog allows: {allowed}"
        )
        at = document.where(("images", name, "licence"))
        yield Finding(
            IMAGE_LICENCE, at, message, "Use another image, or have the licence cleared and listed."
        )


def find_outdated_image_scans(
    catalog: ImageCatalog, document: Document, today: datetime.date, root: Path
) -> list[Finding]:
    """Return findings about scans that are too old on a day, or of a later one: of the catalog, and reports.

    `root` is the workspace's folder.
    """
    wanted = catalog.requirements
    if wanted is None or wanted.scan_days is None:
        return []
    found = []
    days = list_days_of_scan_reports(root)
    for name, image in catalog.images.items():
        if image.scan is not None:
            said = _describe_wrong_scan_day(image.scan.date, today, wanted.scan_days)
            where, help = (
                document.where(("images", name, "scan", "date")),
                "Scan it again, and write the new day.",
            )
            if said:
                found.append(Finding(IMAGE_SCAN_OLD, where, f"the scan of image '{name}' is {said}", help))
        made, file = days.get(image.digest, ("", ""))
        if made and (said := _describe_wrong_scan_day(made, today, wanted.scan_days)):
            message = f"the report about image '{name}' is {said}"
            help = "Scan it again, and put the new report in the place of this one."
            found.append(Finding(IMAGE_SCAN_OLD, Location(file, 1, 1), message, help))
    return found


def _describe_wrong_scan_day(day: str, today: datetime.date, most: int) -> str:
    """Return what is wrong with the day of a scan, as YYYY-MM-DD; empty if nothing is."""
    try:
        age = (today - datetime.date.fromisoformat(day)).days
    except ValueError:
        return f"of {day}, which is not a day"
    if age < -1:  # a day ahead may be a time zone
        return f"of {day}, which has not come yet: today is {today}"
    return f"of {day}, {age} days before {today}; the catalog allows {most}" if age > most else ""


def find_refused_spdx_licences(expression: str, allowed: Collection[str]) -> list[str]:
    """Return the licences of an SPDX expression that are not allowed.

    In AND every part counts, in OR one allowed part is enough. An unreadable expression is refused as a
    whole.
    """
    words = _WORDS.findall(expression)
    if words.count("(") > _DEEPEST:
        return [expression]
    try:
        refused, rest = _parse_spdx_or_expression(words, frozenset(allowed))
    except (IndexError, ValueError):
        return [expression]
    return [expression] if rest else list(dict.fromkeys(refused))


def _parse_spdx_or_expression(words: list[str], allowed: frozenset[str]) -> tuple[list[str], list[str]]:
    refused, words = _parse_spdx_and_expression(words, allowed)
    while words and words[0] == "OR":
        other, words = _parse_spdx_and_expression(words[1:], allowed)
        refused = refused if len(refused) <= len(other) else other
    return refused, words


def _parse_spdx_and_expression(words: list[str], allowed: frozenset[str]) -> tuple[list[str], list[str]]:
    refused, words = _parse_spdx_term(words, allowed)
    while words and words[0] == "AND":
        more, words = _parse_spdx_term(words[1:], allowed)
        refused = [*refused, *more]
    return refused, words


def _parse_spdx_term(words: list[str], allowed: frozenset[str]) -> tuple[list[str], list[str]]:
    if words[0] == "(":
        refused, words = _parse_spdx_or_expression(words[1:], allowed)
        if words[0] != ")":
            raise ValueError
        return refused, words[1:]
    name, rest = words[0], words[1:]
    if name in ("AND", "OR", "WITH", ")"):
        raise ValueError
    if rest and rest[0] == "WITH":
        name, rest = f"{name} WITH {rest[1]}", rest[2:]
    return ([] if name in allowed else [name]), rest
