"""Loading policies/waivers/*.yaml into waivers and findings."""

from __future__ import annotations

import os
from pathlib import Path

from gangplan.findings import Finding, Location
from gangplan.records import dataclass
from gangplan.rulebook import Rulebook
from gangplan.rules.core import SPEC_FILE_NAME
from gangplan.rules.model import Rule
from gangplan.source import Document, load_file
from gangplan.spec.load import parse_spec_document
from gangplan.spec.waiver import Waiver

WAIVERS = "policies/waivers"


@dataclass(frozen=True, slots=True)
class WaiverFile:
    """One policies/waivers/<name>.yaml, its rule, and the policies that it covers (`Rulebook`)."""

    name: str
    spec: Waiver
    document: Document
    rule: Rule
    policies: tuple[Rule, ...]

    @property
    def where(self) -> Location:
        """The line that names the rule."""
        return self.document.where(("rule",))


def load_waiver_files(root: Path, rulebook: Rulebook, findings: list[Finding]) -> tuple[WaiverFile, ...]:
    """Return all waivers of a workspace, sorted by file name; problems of files are added to `findings`.

    A file ending in .yml is refused: it would be ignored and excuse nothing, and its author would not know.
    """
    folder = root / WAIVERS
    if not folder.is_dir():
        return ()
    waivers = []
    for name in sorted(os.listdir(folder)):
        stem, ending = os.path.splitext(name)
        file = f"{WAIVERS}/{name}"
        if name.startswith(".") or ending.lower() not in (".yaml", ".yml"):
            continue
        if ending != ".yaml":
            message, help = f"the file ends in {ending} and would be ignored", f"Rename it to {stem}.yaml."
            findings.append(Finding(SPEC_FILE_NAME, Location(file), message, help))
            continue
        document, found = load_file(folder / name, file)
        findings += found
        if document is not None:
            spec, found = parse_spec_document(Waiver, document)
            findings += found
            if spec is not None:
                rule = rulebook.policy(spec.rule)
                waivers.append(WaiverFile(stem, spec, document, rule, rulebook.policies_of(rule)))
    return tuple(waivers)
