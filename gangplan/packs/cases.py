"""Case files of policies: objects that a policy must let through or refuse, and the message of a refusal.

They are in `tests/` next to the policies, named <policy>.<case>.allow.yaml or <policy>.<case>.deny.yaml.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from pydantic import Field

from gangplan.findings import Finding, Location
from gangplan.packs.model import Params
from gangplan.records import dataclass
from gangplan.rules.policy import POLICY_CASE
from gangplan.source import Document, load_file
from gangplan.spec.base import Strict
from gangplan.spec.load import parse_spec_document

# Policies may have dots in their names, as Kubernetes' own examples do; the names of cases have none.
NAME = re.compile(
    r"(?P<policy>[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?)\.(?P<case>[-a-zA-Z0-9_]+)\.(?P<verdict>allow|deny)\.yaml"
)


class CaseFile(Strict):
    """A case as written in its file."""

    object: dict[str, Any] = Field(description="The object, as it is rendered.")
    namespace: dict[str, Any] | None = Field(None, description="Its Namespace; omitted: one of a team.")
    params: Params = Field({}, description="Parameters in place of the defaults; facts are empty without.")
    old_object: dict[str, Any] | None = Field(None, description="What it was before; then it is an update.")
    message: str = Field("", description="What a refusal must say, or a part of it; deny cases need it.")
    matches: bool = Field(
        True,
        description="False: an object that no rule of the policy names is not a mistake of the case.",
        examples=[False],
    )


@dataclass(frozen=True, slots=True, eq=False)
class PolicyCase:
    """A case: its policy, whether the policy must refuse it, and the object to judge."""

    policy: str
    name: str
    denies: bool
    file: CaseFile
    document: Document
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def where(self) -> Location:
        """The location of its file."""
        return Location(self.document.file, 1, 1)


def read_pack_cases(folder: Path, shown: str) -> tuple[list[PolicyCase], list[Finding]]:
    """Read the cases of a folder, sorted by name; `shown` is the folder's name in findings."""
    found: list[PolicyCase] = []
    findings: list[Finding] = []
    for path in sorted(folder.glob("*.yaml")):
        name = NAME.fullmatch(path.name)
        if name is None:
            where = Location(f"{shown}/{path.name}", 1, 1)
            help = "Name it <policy>.<case>.allow.yaml or <policy>.<case>.deny.yaml."
            findings.append(
                Finding(POLICY_CASE, where, "the name does not say which policy must do what", help)
            )
            continue
        document, wrong = load_file(path, f"{shown}/{path.name}")
        findings += wrong
        if document is None:
            continue
        file, wrong = parse_spec_document(CaseFile, document)
        findings += wrong
        if file is None or wrong:
            continue
        denies = name["verdict"] == "deny"
        if denies and not file.message:
            help = "Add message: with what the user must read."
            findings.append(
                Finding(POLICY_CASE, document.where(()), "a refusal without a message is not checked", help)
            )
            continue
        found.append(PolicyCase(name["policy"], name["case"], denies, file, document, file.params))
    return found, findings
