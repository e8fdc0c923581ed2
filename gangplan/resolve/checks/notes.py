"""Findings about a cluster file, each at the line of a field."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from gangplan.findings import FieldPath, Finding, Location
from gangplan.records import dataclass
from gangplan.rules.model import Rule
from gangplan.spec.cluster import Cluster
from gangplan.spec.declare import suggest_known_or_new
from gangplan.workspace import ClusterFile


@dataclass(slots=True)
class ClusterCheck:
    """A cluster file and the findings about it so far."""

    cluster: ClusterFile
    findings: list[Finding] = field(default_factory=list)

    @property
    def spec(self) -> Cluster:
        """The parsed cluster file."""
        return self.cluster.spec

    def where(self, path: FieldPath, key: bool = False) -> Location:
        """Return the place of a field or, with `key`, of its name."""
        return self.cluster.document.where(path, key=key)

    def report(self, rule: Rule, path: FieldPath, message: str, help: str, key: bool = False) -> None:
        """Record a finding."""
        self.findings.append(Finding(rule, self.where(path, key), message, help))

    def unknown(
        self, rule: Rule, path: FieldPath, what: str, name: str, known: Iterable[str], key: bool = False
    ) -> None:
        """Record a name that is not declared, with the nearest one that is."""
        self.report(
            rule,
            path,
            f"{what} '{name}' is not declared here",
            suggest_known_or_new(what, name, known, self.cluster.document.file),
            key,
        )
