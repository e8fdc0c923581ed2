"""The workspace: platform and team files, read once, and the list of specs. Only this opens these folders."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from gangplan.component import Component, load_component
from gangplan.findings import Finding, Location
from gangplan.model.crds import NO_CRDS, CrdFiles
from gangplan.model.job import Trial
from gangplan.model.platform import ClusterMemo
from gangplan.packs.own import OwnPolicies, load_policies
from gangplan.records import dataclass
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
from gangplan.source import Document, find_special_files, load_file
from gangplan.source.plain import PlainFolders
from gangplan.spec.catalog import ImageCatalog
from gangplan.spec.cluster import Cluster
from gangplan.spec.crd_files import load_crds
from gangplan.spec.declare import suggest_known_or_new
from gangplan.spec.digest import compute_spec_digest
from gangplan.spec.files import read_files_mounted_by_spec
from gangplan.spec.job import TrainingJob
from gangplan.spec.listing import list_spec_files, list_visible_folders, suggest_team_for_spec_folder
from gangplan.spec.load import ModelType, parse_spec_document
from gangplan.spec.near import suggest_nearest as suggest_nearest
from gangplan.spec.phrases import convert_to_name
from gangplan.spec.root import OVERLAYS as OVERLAYS
from gangplan.spec.root import RENDERED as RENDERED
from gangplan.spec.root import SPECS as SPECS
from gangplan.spec.root import find_workspace_root_above as find_workspace_root_above
from gangplan.spec.sorts import sort_specs_sweeps_and_templates
from gangplan.spec.team import Team
from gangplan.spec.waiver_files import WaiverFile, load_waiver_files
from gangplan.spec.words import DNS_LABEL, PATTERN_DESCRIPTIONS

if TYPE_CHECKING:
    from gangplan.model.trial import FromTemplate
    from gangplan.spec.sweep_files import SweepFile as SweepFile
    from gangplan.spec.templates import TemplateSet

# The folders that people write and gangplan reads.
READ_FOLDERS = ("specs", "overlays", "images", "policies", "schemas", "jobtemplates")
CATALOG = "images/catalog.yaml"
# Names of clusters and teams are parts of names of objects (`Name` in spec/base.py).
_LONGEST_NAME = 63
# The fields of a spec that uses a template.
OF_TEMPLATES = frozenset({"template", "parameters"})


@dataclass(frozen=True, slots=True)
class ClusterFile:
    """An overlays/<cluster>/cluster.yaml."""

    name: str
    spec: Cluster
    document: Document
    crds: CrdFiles = NO_CRDS
    memo: ClusterMemo = field(default_factory=ClusterMemo, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TeamFile:
    """A specs/<team>/team.yaml."""

    name: str
    spec: Team
    document: Document


@dataclass(frozen=True, slots=True)
class SpecFile:
    """A spec file: its path from the root, with forward slashes, and the team whose folder contains it."""

    file: str
    team: str

    @property
    def stem(self) -> str:
        """The file's name without .yaml: the job's name unless the spec sets one."""
        return PurePosixPath(self.file).stem


@dataclass(frozen=True, slots=True)
class Spec:
    """A spec after reading: its file, typed value, document (which knows every line) and digest."""

    source: SpecFile
    spec: TrainingJob
    document: Document
    digest: str
    files: Mapping[str, bytes] = field(default_factory=dict)  # mounted by the spec, by name
    trial: Trial | None = None  # if it is a trial of a sweep
    template: FromTemplate | None = None  # if it was made from one


@dataclass(frozen=True, slots=True)
class Workspace:
    """Everything but the specs themselves, read once and passed on.

    `findings` are about the files of clusters, teams, catalog, waivers and CRDs. Those about components and
    policies are stored with them, for the commands that need them.
    """

    root: Path
    clusters: dict[str, ClusterFile] = field(default_factory=dict)
    teams: dict[str, TeamFile] = field(default_factory=dict)
    catalog: ImageCatalog | None = None
    catalog_document: Document | None = None
    spec_files: tuple[SpecFile, ...] = ()
    sweeps: Mapping[str, SweepFile] = field(default_factory=dict)  # of the spec files, those that are sweeps
    templates: TemplateSet | None = None  # None if there are none
    unread: frozenset[str] = frozenset()  # clusters whose file could not be read
    waivers: tuple[WaiverFile, ...] = ()
    crds: CrdFiles = NO_CRDS  # for all clusters
    components: Mapping[str, Component] = field(default_factory=dict)  # by cluster
    component_findings: Mapping[str, Sequence[Finding]] = field(default_factory=dict)
    policies: OwnPolicies = field(default_factory=OwnPolicies)
    rulebook: Rulebook = field(default_factory=Rulebook)
    findings: tuple[Finding, ...] = ()
    is_refused: bool = False  # a folder contains a link or special file, so nothing was read

    @property
    def template_marks(self) -> Mapping[str, str]:
        """A mark of the templates that each spec uses, by spec; it changes with them."""
        return self.templates.marks if self.templates else {}

    def has_template(self, file: str) -> bool:
        """Return whether a file is a template."""
        return self.templates is not None and any(one.file == file for one in self.templates.files)

    @property
    def sweep_marks(self) -> tuple[str, ...]:
        """The marks of all sweeps. A sweep adds objects to clusters, so every run may depend on them."""
        return tuple(sorted(one.mark for one in self.sweeps.values()))


def load_workspace(root: Path, unswept: Collection[str] = (), plain: PlainFolders = {}) -> Workspace:  # noqa: B006  never changed
    """Read everything but the specs, which are only listed. Findings never raise.

    Folders in `unswept` have no sweep, and the contents of those in `plain` are known. If there is anything
    but plain files and folders, only that is reported and nothing is read.
    """
    refused = find_special_files(root, READ_FOLDERS, plain)
    if refused:
        return Workspace(root, findings=tuple(refused), is_refused=True)
    findings: list[Finding] = []
    clusters = _load_cluster_files(root, findings)
    teams = _load_team_files(root, findings)
    catalog, catalog_document = _load_image_catalog(root, findings)
    every = list_spec_files(root, SPECS, list_visible_folders(root / SPECS), findings, plain)
    listed, sweeps, templates = sort_specs_sweeps_and_templates(root, every, unswept, findings)
    # A file that cannot be read is reported once, not again wherever it is named.
    known = set(list_visible_folders(root / OVERLAYS))
    _check_cluster_and_team_references(
        clusters, teams, known, set(list_visible_folders(root / SPECS)), findings
    )
    rulebook = load_rulebook(root)
    waivers = load_waiver_files(root, rulebook, findings)
    crds, own = load_crds(root, clusters, findings)
    components = {name: load_component(root, name) for name in clusters}
    return Workspace(
        root,
        {name: replace(file, crds=own[name]) for name, file in clusters.items()},
        teams,
        catalog,
        catalog_document,
        tuple(SpecFile(*one) for one in listed),
        sweeps,
        templates,
        frozenset(known - set(clusters)),
        waivers,
        crds,
        components={name: component for name, (component, _) in components.items()},
        component_findings={name: found for name, (_, found) in components.items()},
        policies=load_policies(root),
        rulebook=rulebook,
        findings=tuple(findings),
    )


def load_spec(
    root: Path, source: SpecFile, templates: TemplateSet | None = None
) -> tuple[Spec | None, list[Finding]]:
    """Read one spec file, and apply the template that it names, if any."""
    document, findings = load_file(root / source.file, source.file)
    if document is None:
        return None, findings
    made_from = None
    if isinstance(document.value, dict) and not OF_TEMPLATES.isdisjoint(document.value):
        from gangplan.spec.templates import apply_job_template  # few specs name one

        document, made_from, findings = apply_job_template(templates, source.team, document)
        if document is None:
            return None, findings
    spec, more = parse_spec_document(TrainingJob, document)
    findings = [*findings, *more]
    if spec is None or findings:
        return None, findings
    if spec.team is not None and spec.team != source.team:
        message = f"team is '{spec.team}', but the file is in specs/{source.team}/"
        help = f"Remove the line, or move the file to specs/{spec.team}/."
        findings.append(Finding(SPEC_TEAM, document.where(("team",)), message, help))
        return None, findings
    files, findings = (
        read_files_mounted_by_spec(root, source.file, spec.files, document) if spec.files else ({}, [])
    )
    if findings:
        return None, findings
    return Spec(source, spec, document, compute_spec_digest(spec, files), files, template=made_from), findings


def _read_workspace_file(
    root: Path, file: str, model: type[ModelType], findings: list[Finding]
) -> tuple[ModelType, Document] | None:
    document, found = load_file(root / file, file)
    findings.extend(found)
    if document is None:
        return None
    value, found = parse_spec_document(model, document)
    findings.extend(found)
    return None if value is None else (value, document)


def _load_cluster_files(root: Path, findings: list[Finding]) -> dict[str, ClusterFile]:
    clusters: dict[str, ClusterFile] = {}
    for name in list_visible_folders(root / OVERLAYS):
        file = f"{OVERLAYS}/{name}/cluster.yaml"
        if not os.path.lexists(root / file):
            message = f"overlays/{name}/ has no cluster.yaml"
            help = "Create it (gangplan explain Cluster lists its fields), or remove the folder."
            findings.append(Finding(FILE_UNREADABLE, Location(file), message, help))
            continue
        read = _read_workspace_file(root, file, Cluster, findings)
        if read and _check_name_matches_workspace_folder(read[0].name, name, read[1], findings):
            clusters[name] = ClusterFile(name, read[0], read[1])
    if not clusters and not findings:
        help = "Create one: gangplan new cluster NAME."
        findings.append(Finding(WORKSPACE_EMPTY, Location(OVERLAYS), "no cluster is declared", help))
    return clusters


def _load_team_files(root: Path, findings: list[Finding]) -> dict[str, TeamFile]:
    teams: dict[str, TeamFile] = {}
    for name in list_visible_folders(root / SPECS):
        file = f"{SPECS}/{name}/team.yaml"
        if not os.path.lexists(root / file):
            message, help = f"specs/{name}/ has no team.yaml", suggest_team_for_spec_folder(root, name)
            findings.append(Finding(TEAM_MISSING, Location(file), message, help))
            continue
        read = _read_workspace_file(root, file, Team, findings)
        if read and _check_name_matches_workspace_folder(read[0].name, name, read[1], findings):
            teams[name] = TeamFile(name, read[0], read[1])
    return teams


def _load_image_catalog(root: Path, findings: list[Finding]) -> tuple[ImageCatalog | None, Document | None]:
    if not os.path.lexists(root / CATALOG):
        message, help = "there is no image catalog", f"Add {CATALOG}."
        findings.append(Finding(CATALOG_MISSING, Location(CATALOG), message, help))
        return None, None
    read = _read_workspace_file(root, CATALOG, ImageCatalog, findings)
    return read if read else (None, None)


def _check_name_matches_workspace_folder(
    written: str | None, folder: str, document: Document, findings: list[Finding]
) -> bool:
    if len(folder) > _LONGEST_NAME or not re.fullmatch(DNS_LABEL, folder):
        above, kind = os.path.dirname(document.file), document.value["kind"].lower()
        form = f"{PATTERN_DESCRIPTIONS[DNS_LABEL]}, at most {_LONGEST_NAME} characters"
        message = f"{above}/: '{folder}' cannot be the name of a {kind} ({form})"
        like = convert_to_name(DNS_LABEL, folder)[:_LONGEST_NAME].strip("-")
        help = f"Rename the folder to {like}." if like else "Rename the folder."
        findings.append(Finding(SPEC_VALUE, Location(document.file), message, help))
        return False
    if written is None or written == folder:
        return True
    message, help = f"name is '{written}', but the folder is '{folder}'", f"Write name: {folder}."
    findings.append(Finding(SPEC_VALUE, document.where(("name",)), message, help))
    return False


def _check_cluster_and_team_references(
    clusters: dict[str, ClusterFile],
    teams: dict[str, TeamFile],
    known_clusters: set[str],
    known_teams: set[str],
    findings: list[Finding],
) -> None:
    """Report unknown names by which platform and team files refer to each other."""
    for cluster in clusters.values():
        for name in cluster.spec.teams:
            if name not in known_teams:
                where = cluster.document.where(("teams", name), key=True)
                message = f"team '{name}' has no specs/{name}/team.yaml"
                help = suggest_known_or_new("team", name, known_teams)
                findings.append(Finding(TEAM_UNKNOWN, where, message, help))
    for team in teams.values():
        for path, name in team.spec.named_clusters:
            if name not in known_clusters:
                message = f"cluster '{name}' is not declared in overlays/"
                help = suggest_known_or_new("cluster", name, known_clusters)
                findings.append(Finding(CLUSTER_UNKNOWN, team.document.where(path), message, help))
        for name, connection in team.spec.connections.items():
            if connection.claim is not None and connection.claim not in team.spec.claims:
                where, wanted = team.document.where(("connections", name, "claim")), connection.claim
                help = suggest_known_or_new("claim", wanted, team.spec.claims, team.document.file)
                findings.append(Finding(CLAIM_UNKNOWN, where, f"claim '{wanted}' is not declared", help))
