"""Findings for machines: one JSON document with a versioned shape."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from gangplan.findings import Finding

# Raised when a field changes its meaning or goes; new fields may come without notice.
SHAPE = 1


def json_report(findings: Sequence[Finding], facts: Mapping[str, Any]) -> str:
    """The findings and a few facts of the run (`checked`, engines) as JSON with a line end."""
    document = {"version": SHAPE, **facts, "findings": [_as_dict(finding) for finding in findings]}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _as_dict(finding: Finding) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "severity": finding.severity.word,
        "file": finding.where.file,
        "line": finding.where.line,
        "column": finding.where.column,
        "object": finding.object_ref,
        "path": finding.path,
        "message": finding.message,
        "help": finding.help,
    }
