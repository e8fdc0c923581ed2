"""The workspace: platform and team files read once, spec files listed. Nothing else opens these folders."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from gangplan.component import Component, load_component
from gangplan.errors import UserError
from gangplan.findings import Finding, Location
from gangplan.model.crds import NO_CRDS, CrdFiles
from gangplan.packs.own import OwnPolicies, load_policies
from gangplan.rulebook import Rulebook, load_rulebook
from gangplan.rules.core import (
    CATALOG_MISSING,
    FILE_UNREADABLE,
    SPEC_TEAM,
    SPEC_VALUE,
    TEAM_MISSING,
    WORKSPACE_EMPTY,
)
from gangplan.rules.specs import CLAIM_UNKNOWN, CLUSTER_UNKNOWN
from gangplan.rules.teams import TEAM_UNKNOWN
from gangplan.source import Document, load_file, unplain
from gangplan.spec.catalog import ImageCatalog
from gangplan.spec.cluster import Cluster
from gangplan.spec.crd_files import load_crds
from gangplan.spec.job import TrainingJob
from gangplan.spec.listing import folders, list_specs
from gangplan.spec.load import M, parse
from gangplan.spec.near import closest
from gangplan.spec.near import nearest as nearest
from gangplan.spec.team import Team
from gangplan.spec.waiver_files import WaiverFile, load_waivers

# All that people write and gangplan reads.
READ = ("specs", "overlays", "images", "policies", "schemas")
SPECS, OVERLAYS, CATALOG, RENDERED = "specs", "overlays", "images/catalog.yaml", "rendered"


@dataclass(frozen=True, slots=True)
class ClusterFile:
    """One overlays/<cluster>/cluster.yaml."""

    name: str
    spec: Cluster
    document: Document
    crds: CrdFiles = NO_CRDS
    known: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)  # what follows, once asked


@dataclass(frozen=True, slots=True)
class TeamFile:
    """One specs/<team>/team.yaml."""

    name: str
    spec: Team
    document: Document


@dataclass(frozen=True, slots=True)
class SpecFile:
    """One spec file: its path from the root, with forward slashes, and the team whose folder holds it."""

    file: str
    team: str

    @property
    def stem(self) -> str:
        """The file's name without .yaml: the job's name unless the spec gives one."""
        return PurePosixPath(self.file).stem


@dataclass(frozen=True, slots=True)
class Spec:
    """A spec that was read: its file, its typed value, and the document that knows every line."""

    source: SpecFile
    spec: TrainingJob
    document: Document


@dataclass(frozen=True, slots=True)
class Workspace:
    """Everything but the specs themselves, read once and handed on.

    `findings` are about the files of clusters, teams, catalog, waivers and CRDs; those about components and
    policies stand with these, for commands that look at them.
    """

    root: Path
    clusters: dict[str, ClusterFile] = field(default_factory=dict)
    teams: dict[str, TeamFile] = field(default_factory=dict)
    catalog: ImageCatalog | None = None
    catalog_document: Document | None = None
    spec_files: tuple[SpecFile, ...] = ()
    unread: frozenset[str] = frozenset()  # clusters whose file could not be read
    waivers: tuple[WaiverFile, ...] = ()
    crds: CrdFiles = NO_CRDS  # those for all clusters
    components: Mapping[str, Component] = field(default_factory=dict)  # by cluster
    component_findings: Mapping[str, Sequence[Finding]] = field(default_factory=dict)
    policies: OwnPolicies = field(default_factory=OwnPolicies)
    rulebook: Rulebook = field(default_factory=Rulebook)
    findings: tuple[Finding, ...] = ()
    is_refused: bool = False  # there is a link or worse in the folders that are read: nothing of them was


def find_root(start: Path) -> Path:
    """The nearest folder at or above `start` that holds specs/ and overlays/. Raises UserError."""
    for folder in (start, *start.parents):
        if (folder / SPECS).is_dir() and (folder / OVERLAYS).is_dir():
            return folder
    raise UserError(
        "nothing was checked: this is not a gangplan workspace (no folder above has specs/ and overlays/)",
        "Go to the repository that holds your specs, or name it with --workspace DIR.",
    )


def load_workspace(root: Path) -> Workspace:
    """Read everything but the specs, which are listed. Findings never raise.

    Where anything but plain files and folders stands among them, that alone is told and nothing is read.
    """
    refused = unplain(root, READ)
    if refused:
        return Workspace(root, findings=tuple(refused), is_refused=True)
    findings: list[Finding] = []
    clusters = _load_clusters(root, findings)
    teams = _load_teams(root, findings)
    catalog, catalog_document = _load_catalog(root, findings)
    spec_files = tuple(SpecFile(*one) for one in list_specs(root, SPECS, folders(root / SPECS), findings))
    # A file that cannot be read is reported once, not again wherever it is named.
    known = set(folders(root / OVERLAYS))
    _check_references(clusters, teams, known, set(folders(root / SPECS)), findings)
    rulebook = load_rulebook(root)
    waivers = load_waivers(root, rulebook, findings)
    crds, own = load_crds(root, clusters, findings)
    components = {name: load_component(root, name) for name in clusters}
    return Workspace(
        root,
        {name: replace(file, crds=own[name]) for name, file in clusters.items()},
        teams,
        catalog,
        catalog_document,
        spec_files,
        frozenset(known - set(clusters)),
        waivers,
        crds,
        components={name: component for name, (component, _) in components.items()},
        component_findings={name: found for name, (_, found) in components.items()},
        policies=load_policies(root),
        rulebook=rulebook,
        findings=tuple(findings),
    )


def load_spec(root: Path, source: SpecFile) -> tuple[Spec | None, list[Finding]]:
    """Read one spec file."""
    document, findings = load_file(root / source.file, source.file)
    if document is None:
        return None, findings
    spec, more = parse(TrainingJob, document)
    findings = [*findings, *more]
    if spec is None or findings:
        return None, findings
    if spec.team is not None and spec.team != source.team:
        findings.append(
            Finding(
                SPEC_TEAM,
                document.where(("team",)),
                f"team is '{spec.team}', but the file is in specs/{source.team}/",
                f"Remove the line, or move the file to specs/{spec.team}/.",
            )
        )
        return None, findings
    return Spec(source, spec, document), findings


def _read(root: Path, file: str, model: type[M], findings: list[Finding]) -> tuple[M, Document] | None:
    document, found = load_file(root / file, file)
    findings.extend(found)
    if document is None:
        return None
    value, found = parse(model, document)
    findings.extend(found)
    return None if value is None else (value, document)


def _load_clusters(root: Path, findings: list[Finding]) -> dict[str, ClusterFile]:
    clusters: dict[str, ClusterFile] = {}
    for name in folders(root / OVERLAYS):
        file = f"{OVERLAYS}/{name}/cluster.yaml"
        if not os.path.lexists(root / file):
            message = f"overlays/{name}/ has no cluster.yaml"
            help = "Create it (gangplan explain Cluster lists its fields), or remove the folder."
            findings.append(Finding(FILE_UNREADABLE, Location(file), message, help))
            continue
        read = _read(root, file, Cluster, findings)
        if read and _own_name(read[0].name, name, read[1], findings):
            clusters[name] = ClusterFile(name, read[0], read[1])
    if not clusters and not findings:
        help = "Add overlays/<cluster>/cluster.yaml."
        findings.append(Finding(WORKSPACE_EMPTY, Location(OVERLAYS), "no cluster is declared", help))
    return clusters


def _load_teams(root: Path, findings: list[Finding]) -> dict[str, TeamFile]:
    teams: dict[str, TeamFile] = {}
    for name in folders(root / SPECS):
        file = f"{SPECS}/{name}/team.yaml"
        if not os.path.lexists(root / file):
            findings.append(
                Finding(
                    TEAM_MISSING,
                    Location(file),
                    f"specs/{name}/ has no team.yaml",
                    _which_team(root, name),
                )
            )
            continue
        read = _read(root, file, Team, findings)
        if read and _own_name(read[0].name, name, read[1], findings):
            teams[name] = TeamFile(name, read[0], read[1])
    return teams


def _which_team(root: Path, folder: str) -> str:
    """What to do about a folder without team.yaml: it is misspelt, or the team is new."""
    teams = [name for name in folders(root / SPECS) if (root / SPECS / name / "team.yaml").is_file()]
    if near := closest(folder, teams):
        return f"Did you mean specs/{near}/? Move the files there, or add a team.yaml for a new team."
    return "Add one; gangplan explain Team lists its fields."


def _load_catalog(root: Path, findings: list[Finding]) -> tuple[ImageCatalog | None, Document | None]:
    if not os.path.lexists(root / CATALOG):
        help = "Add images/catalog.yaml."
        findings.append(Finding(CATALOG_MISSING, Location(CATALOG), "there is no image catalog", help))
        return None, None
    read = _read(root, CATALOG, ImageCatalog, findings)
    return read if read else (None, None)


def _own_name(written: str | None, folder: str, document: Document, findings: list[Finding]) -> bool:
    if written is None or written == folder:
        return True
    findings.append(
        Finding(
            SPEC_VALUE,
            document.where(("name",)),
            f"name is '{written}', but the folder is '{folder}'",
            "Remove the line, or rename the folder.",
        )
    )
    return False


def _check_references(
    clusters: dict[str, ClusterFile],
    teams: dict[str, TeamFile],
    known_clusters: set[str],
    known_teams: set[str],
    findings: list[Finding],
) -> None:
    """Names that platform and team files use of each other."""
    for cluster in clusters.values():
        for name in cluster.spec.teams:
            if name not in known_teams:
                where = cluster.document.where(("teams", name), key=True)
                findings.append(
                    Finding(
                        TEAM_UNKNOWN,
                        where,
                        f"team '{name}' has no specs/{name}/team.yaml",
                        nearest(name, known_teams),
                    )
                )
    for team in teams.values():
        for index, name in enumerate(team.spec.clusters or ()):
            if name not in known_clusters:
                where = team.document.where(("clusters", index))
                message = f"cluster '{name}' is not declared in overlays/"
                findings.append(Finding(CLUSTER_UNKNOWN, where, message, nearest(name, known_clusters)))
        for name, connection in team.spec.connections.items():
            if connection.claim is not None and connection.claim not in team.spec.claims:
                where = team.document.where(("connections", name, "claim"))
                findings.append(
                    Finding(
                        CLAIM_UNKNOWN,
                        where,
                        f"claim '{connection.claim}' is not declared",
                        nearest(connection.claim, team.spec.claims),
                    )
                )
