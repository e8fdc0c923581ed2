"""Readers of each format: its usual program, or its documented grammar."""

from __future__ import annotations

import gzip
import hashlib
import importlib.metadata
import json
import re
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import jsonschema
import junitparser
from markdown_it import MarkdownIt

_LEVELS = ("error", "warning", "note")
ZERO_WIDTH = "\u200b"
# A workflow command (docs.github.com, "Workflow commands for GitHub Actions").
_COMMAND = re.compile(r"^::(?P<name>[a-z-]+)(?: (?P<properties>[^:\r\n]*))?::(?P<data>[^\r\n]*)$")
# A relative reference of RFC 3986 that is a path: unreserved characters, slashes, whole triplets.
_RELATIVE_PATH = re.compile(r"(?!/|\./)(?:[A-Za-z0-9._~/-]|%[0-9A-F]{2})+")
# sarif-schema-2.1.0.json of the OASIS standard with Errata 01 (28 August 2023), as docs.oasis-open.org has it
# below sarif/sarif/v2.1.0/errata01/os/schemas/.
_OASIS_SHA256 = "c3b4bb2d6093897483348925aaa73af03b3e3f4bd4ca38cef26dcb4212a2682e"
# The part of junit-10.xsd (Jenkins' xUnit plugin) that we use: the attributes that an element must have,
# those that it may have, and the elements inside it.
_JUNIT: dict[str, tuple[set[str], set[str], set[str]]] = {
    "testsuites": (set(), {"name", "time", "tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": ({"name", "tests", "failures", "errors"}, {"time", "skipped"}, {"testcase"}),
    "testcase": ({"name"}, {"classname", "time"}, {"skipped", "failure", "system-out"}),
    "failure": (set(), {"type", "message"}, set()),
    "skipped": (set(), {"type", "message"}, set()),
    "system-out": (set(), set(), set()),
}
# The tokens of a line of our Markdown.
INLINE = frozenset(
    ("text", "code_inline", "softbreak", "html_inline", "strong_open", "strong_close", "em_open", "em_close")
)


@dataclass(frozen=True)
class Annotation:
    """A workflow command as GitHub's runner reads it."""

    name: str
    properties: dict[str, str]
    data: str


def annotations(log: str) -> list[Annotation]:
    """Return the commands of a log; other lines are text, and must not look like a command to the runner."""
    found = []
    for line in log.splitlines():
        match = _COMMAND.match(line)
        if match is None:
            assert not line.lstrip().startswith("::"), f"a command that is broken: {line}"
            assert not re.search(r"##(vso)?\[", line), f"an old command: {line}"
            continue
        pairs = (pair.split("=", 1) for pair in (match["properties"] or "").split(",") if pair)
        properties = {name: _unescaped(value, ":,") for name, value in pairs}
        found.append(Annotation(match["name"], properties, _unescaped(match["data"])))
    return found


def _unescaped(text: str, more: str = "") -> str:
    for char in f"\r\n{more}":
        text = text.replace(f"%{ord(char):02X}", char)
    return text.replace("%25", "%")


@cache
def oasis_schema() -> dict[str, Any]:
    """Return the OASIS schema of SARIF 2.1.0, as an installed package has it (docs/decisions/0006)."""
    package = importlib.metadata.distribution("linceo")
    data = package.locate_file("linceo/data/sarif-schema-2.1.0.json").read_bytes()  # type: ignore[attr-defined]
    assert hashlib.sha256(data).hexdigest() == _OASIS_SHA256
    schema: dict[str, Any] = json.loads(data)
    return schema


def oasis_errors(document: object) -> list[str]:
    """Return the errors that the OASIS schema finds in a document."""
    validator = jsonschema.Draft4Validator(oasis_schema(), format_checker=jsonschema.FormatChecker())
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(document)]


def sarif(text: str) -> dict[str, Any]:
    """Check that a SARIF file satisfies its schema and GitHub, and return its one run.

    GitHub's demands are in docs.github.com, "SARIF support for code scanning" and "SARIF results exceed one
    or more limits": it refuses files of more than 10 MB gzipped, and shows the first 5000 results.
    """
    document: dict[str, Any] = json.loads(text)
    assert oasis_errors(document) == []
    assert len(gzip.compress(text.encode())) < 10_000_000
    (run,) = document["runs"]
    assert isinstance(run["results"], list), "GitHub refuses a run without results"
    assert len(run["results"]) <= 25_000
    rules = run["tool"]["driver"]["rules"]
    ids = [rule["id"] for rule in rules]
    assert len(ids) == len(set(ids))
    for rule in rules:
        assert 0 < len(rule["name"]) <= 255
        assert 0 < len(rule["shortDescription"]["text"]) <= 1024
        assert 0 < len(rule["fullDescription"]["text"]) <= 1024
        assert rule["help"]["text"]
        assert len(rule["properties"]["tags"]) <= 10
    for result in run["results"]:
        assert ids[result["ruleIndex"]] == result["ruleId"]
        assert set(result["partialFingerprints"]) == {"gangplan/v1"}, "the upload action adds its own"
        (location,) = result["locations"]
        place = location["physicalLocation"]
        region = place["region"]
        start, end = ((region[f"{side}Line"], region[f"{side}Column"]) for side in ("start", "end"))
        assert (1, 1) <= start <= end
        assert _RELATIVE_PATH.fullmatch(place["artifactLocation"]["uri"])
    levels = [(bool(one.get("suppressions")), _LEVELS.index(one["level"])) for one in run["results"]]
    assert levels == sorted(levels), "the worst first: GitHub shows 5000"
    prints = [one["partialFingerprints"]["gangplan/v1"] for one in run["results"]]
    assert len(prints) == len(set(prints))
    assert isinstance(run, dict)
    return run


def sarif_message(result: dict[str, Any]) -> str:
    """Check that the message has no link, and return it as a viewer shows it, with escapes undone."""
    text = str(result["message"]["text"])
    assert not re.search(r"(?<!\\)\[[^\[\]]*\]\(", text), "an embedded link"
    return re.sub(r"\\\[(?=[^\[\]]*\]\()", "[", text)


def sarif_file(result: dict[str, Any]) -> str:
    """Return the path of a result."""
    return unquote(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"])


def sarif_line(result: dict[str, Any]) -> int:
    """Return the line of a result."""
    return int(result["locations"][0]["physicalLocation"]["region"]["startLine"])


def junit(text: str) -> list[junitparser.TestCase]:
    """Return the cases of a JUnit file, by junitparser; check its shape (junit-10.xsd) and the counts of its
    suites."""
    for element in ElementTree.fromstring(text.encode()).iter():
        required, optional, inside = _JUNIT[element.tag]
        assert required <= set(element.attrib) <= required | optional, element.tag
        assert {child.tag for child in element} <= inside
        assert re.fullmatch(r"[0-9]{1,3}", element.get("time", "0"))
        assert inside == set() or not (element.text or "").strip(), "text between elements"
    root = junitparser.JUnitXml.fromstring(text.encode())
    cases = []
    for suite in root:
        written = (suite.tests, suite.failures, suite.errors, suite.skipped)
        suite.update_statistics()
        assert written == (suite.tests, suite.failures, suite.errors, suite.skipped)
        names = [(case.classname, case.name) for case in suite]
        assert len(names) == len(set(names)), "CI systems tell cases by their names"
        cases += list(suite)
    assert root.tests == len(cases)
    return cases


def gitlab(text: str) -> list[dict[str, Any]]:
    """Check that a GitLab code quality file has the documented shape (docs.gitlab.com, Code Quality); return
    it."""
    assert not text.startswith("\ufeff"), "GitLab takes no byte order mark"
    found = json.loads(text)
    assert isinstance(found, list)
    for one in found:
        assert one["check_name"]
        assert isinstance(one["description"], str)
        assert set(one) == {"description", "check_name", "fingerprint", "severity", "location"}
        assert one["severity"] in ("info", "minor", "major", "critical", "blocker")
        assert not one["location"]["path"].startswith(("./", "/"))
        assert isinstance(one["location"]["lines"]["begin"], int)
        assert one["location"]["lines"]["begin"] >= 1
    prints = [one["fingerprint"] for one in found]
    assert len(prints) == len(set(prints)), "GitLab drops what it takes for a repetition"
    return found


def markdown_text(text: str) -> str:
    """Return what a reader of Markdown sees, one line per block; no text of a user may be HTML or a link."""
    parser = MarkdownIt("gfm-like", {"linkify": False})
    lines = []
    for token in parser.parse(text):
        if token.type == "html_block":
            assert re.fullmatch(
                r"(<!-- gangplan -->|</?details( open)?>(<summary>[0-9]+ [a-z]+</summary>)?)\n?",
                token.content,
            ), token.content
        for child in token.children or ():
            assert child.type in INLINE, child
            if child.type == "html_inline":
                assert child.content == "<br>"
        if token.type == "inline":
            shown = "".join(
                "\n" if child.type in ("softbreak", "html_inline") else child.content
                for child in token.children or ()
            )
            lines.append(shown.replace(ZERO_WIDTH, ""))
    return "\n".join(lines)
