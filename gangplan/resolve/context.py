"""The state of resolving one job: a spec on a cluster, the layers of defaults, and the findings so far."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from functools import cache
from typing import Any

from pydantic.alias_generators import to_camel

from gangplan.findings import NO_CLUE, Clue, FieldPath, Finding, Location
from gangplan.model.job import Origin, Origins
from gangplan.model.profiles import WORKLOAD_PROFILES
from gangplan.records import dataclass
from gangplan.rules.model import Rule, Severity
from gangplan.source import Document
from gangplan.spec.catalog import ImageCatalog
from gangplan.spec.declare import suggest_known_or_new, suggest_new
from gangplan.spec.near import find_similar
from gangplan.workspace import ClusterFile, Spec, TeamFile, suggest_nearest

_alias = cache(to_camel)  # for names of fields, a fixed set


@dataclass(slots=True)
class JobResolution:
    """One spec, its team, one cluster. `findings` and `origins` grow while the job is resolved."""

    spec: Spec
    team: TeamFile
    cluster: ClusterFile
    catalog: ImageCatalog
    findings: list[Finding] = field(default_factory=list)
    origins: dict[str, Origin] = field(default_factory=dict)
    pulled: dict[str, Origins] = field(default_factory=dict)  # how images get to the cluster
    teams: Mapping[str, TeamFile] = field(default_factory=dict)
    catalog_document: Document | None = None
    jobs: frozenset[str] = frozenset()  # of the team, by the names of their files

    def where(self, *path: str | int, key: bool = False) -> Location:
        """Return the place of a field in the spec."""
        return self.spec.document.where(path, key=key)

    def origin_of(self, name: str, path: FieldPath) -> Location:
        """Return where the value of a resolved field was written: spec, team or cluster file."""
        origin = self.origins.get(name)
        return origin.where if origin and origin.where else self.spec.document.where(path)

    def report(
        self,
        rule: Rule,
        where: Location,
        message: str,
        help: str = "",
        level: Severity | None = None,
        until: str = "",
    ) -> None:
        """Record a finding; `level` replaces the rule's severity if milder, `until` is its last day."""
        clue = Clue(until=until) if until else NO_CLUE
        self.findings.append(Finding(rule, where, message, help, level=level, clue=clue))

    def unknown(self, rule: Rule, where: Location, what: str, name: str, known: Iterable[str]) -> None:
        """Record that `name` is not among `known`, with the nearest one."""
        self.report(
            rule,
            where,
            f"{what} '{name}' is not declared for team {self.team.name} or cluster {self.cluster.name}",
            suggest_known_or_new(what, name, known, self.cluster.document.file),
        )

    def near(self, name: str, known: Iterable[str], *blocks: str, key: str = "") -> str:
        """Return a help for an unknown name: which other team declares it, if any, and the nearest name.

        Other teams' `blocks` are searched; `key` is what was written after the name, and is kept in the
        suggestion.
        """
        owners = [
            team.name
            for team in self.teams.values()
            if team.name != self.team.name and any(name in getattr(team.spec, block) for block in blocks)
        ]
        if not owners:
            names, file = [*known], self.team.document.file
            what = to_camel(blocks[0]).removesuffix("s")
            if key and (close := find_similar(name, names)):
                return f"Did you mean '{close}/{key}'?"
            return suggest_known_or_new(what, name, names, file) if names else suggest_new(what, name, file)
        return f"Team {owners[0]} declares it, but a run can use only what its own team declares. {suggest_nearest(name, known)}"

    def choose(self, name: str, built_in: Any) -> Any:
        """Return the value of a field by the chain spec, profile, team, cluster, built-in; record its origin.

        The name is the model's; the same name in `Defaults` and in the profile supplies the default.
        """
        alias = _alias(name)
        document = self.spec.document
        written = getattr(self.spec.spec, name, None)
        if written is not None:
            return self._keep(alias, written, "spec", document.where((alias,)))
        profile = self.spec.spec.profile
        if profile is not None and hasattr(WORKLOAD_PROFILES[profile], name):
            return self._keep(
                alias,
                getattr(WORKLOAD_PROFILES[profile], name),
                f"profile {profile}",
                document.where(("profile",)),
            )
        for layer, source in (("team", self.team), ("cluster", self.cluster)):
            value = getattr(source.spec.defaults, name, None)
            if value is not None:
                return self._keep(
                    alias, value, f"{layer} {source.name}", source.document.where(("defaults", alias))
                )
        return self._keep(alias, built_in, "built-in", None)

    def _keep(self, alias: str, value: Any, layer: str, where: Location | None) -> Any:
        self.origins[alias] = Origin(layer, where)
        return value
