"""A draft spec: its values, what the workspace must gain for it, and questions for a person."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cache
from typing import Any, NamedTuple

from gangplan.findings import Finding, Location
from gangplan.imports.account import SourceNode
from gangplan.imports.pods import SourceMount
from gangplan.imports.suggest import Suggestion
from gangplan.imports.workload import SourceJob
from gangplan.records import dataclass
from gangplan.rules.model import Rule
from gangplan.spec.cluster import Cluster
from gangplan.spec.job import TrainingJob
from gangplan.spec.team import Team
from gangplan.workspace import Workspace

MIGRATED_PREFIX = "migrated-"
ORIGIN_LABEL = "migrated-from"


@cache
def has_file_field(field: str, of: type[Any] = TrainingJob) -> bool:
    """Return whether a file format has a field, by its name in the file."""
    return any((one.alias or name) == field for name, one in of.model_fields.items())


@dataclass(frozen=True, slots=True)
class ImportAnswers:
    """What the command line says about questions that sources leave open.

    It may name an image of the catalog, a command, a digest by repository, and whether the licence of a
    commercial MPI is accepted.
    """

    image: str = ""
    command: str = ""
    digests: Mapping[str, str] = field(default_factory=dict)
    has_licence: bool = False


@dataclass(frozen=True, slots=True)
class ImportTarget:
    """Where specs and their runs go: the workspace, the team and its clusters."""

    workspace: Workspace
    team: str
    answers: ImportAnswers = ImportAnswers()
    images: dict[tuple[str, str, str], tuple[str, str, str]] = field(
        default_factory=dict
    )  # name, framework and folder of the SSH keys, once given

    @property
    def of_team(self) -> Team:
        """The team's file; the command has checked that the team exists."""
        return self.workspace.teams[self.team].spec

    @property
    def clusters(self) -> dict[str, Cluster]:
        """The clusters on which specs of the team run by default, else all that admit it."""
        named = self.of_team.clusters
        found = {
            name: one.spec for name, one in self.workspace.clusters.items() if self.team in one.spec.teams
        }
        return {name: one for name, one in found.items() if named is None or name in named}


@dataclass(frozen=True, slots=True)
class Question:
    """A question that only a person can answer, and its place at or below a node of the source."""

    where: Location
    message: str
    help: str
    node: SourceNode


class UnmetFact(NamedTuple):
    """A fact of a source that is different in the run, or absent there (`run` is None)."""

    area: str
    what: str
    source: str
    run: str | None
    why: str


@dataclass(slots=True)
class SpecDraft:
    """A draft spec, in the making.

    `unmet` are facts of the source that the comparison with the run would not see.
    `origins` gives the node of the source for each field, and `of_fabric` the containers that belong to the
    fabric of nodes. `rdma` are devices of a fabric by resource, and `host_paths` mounts of folders of the
    node: what becomes of both is decided once all pods are known. `moved` are folders of the source that a run
    has elsewhere; `gpu_resource` is what its nodes call their GPUs.
    """

    work: SourceJob
    home: ImportTarget
    name: str = ""
    given_command: tuple[str, ...] = ()
    command_why: str = ""
    of_fabric: set[str] = field(default_factory=set)
    rdma: dict[str, tuple[int | None, list[SourceNode]]] = field(default_factory=dict)
    host_paths: list[SourceMount] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[str, SourceNode] = field(default_factory=dict)
    suggestions: list[Suggestion] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)
    refusals: list[Finding] = field(default_factory=list)
    unmet: list[UnmetFact] = field(default_factory=list)
    moved: dict[str, str] = field(default_factory=dict)
    gpu_resource: str = ""

    def put(self, path: str, value: Any, node: SourceNode | None = None) -> bool:
        """Set a field (`mpi.bindTo`, or `env` with a key: `env/NAME`); return False if it has another value.

        The node is marked as mapped, or becomes a question if the roles of a source differ.
        """
        top, _, key = path.partition("/")
        block = self.values
        *parents, last = top.split(".")
        for name in parents:
            block = block.setdefault(name, {})
        if key:
            block = block.setdefault(last, {})
            last = key
        if last in block and block[last] != value:
            if node is not None:
                node.asked(
                    f"a run has one {path.replace('/', '.')} for all pods, and it is {block[last]!r} already"
                )
            return False
        block[last] = value
        if node is not None:
            node.mapped(path.replace("/", "."))
            self.origins.setdefault(top.split(".")[0], node)
        return True

    def add_rdma(self, resource: str, count: int | None, nodes: list[SourceNode]) -> None:
        """Add devices of a fabric; those of a pod with another number than the first become a question."""
        known, places = self.rdma.setdefault(resource, (count, []))
        if known == count:
            places += nodes
            return
        for node in nodes:
            node.asked(f"a run has one network.rdma for all pods, and it is {known} already")

    def ask(self, node: SourceNode, message: str, help: str = "") -> None:
        """Ask about the value at a node, in the account and among the findings."""
        node.account.mark(node.path, "asked", "", message)
        self.questions.append(Question(node.where, f"{node.name}: {message}", help, node))

    def wonder(self, node: SourceNode, message: str, help: str = "") -> None:
        """Ask about something that was mapped all the same."""
        self.wonder_at(node.where, message, help, node)

    def wonder_at(self, where: Location, message: str, help: str, node: SourceNode) -> None:
        """Ask about a place inside the value at a node."""
        self.questions.append(Question(where, message, help, node))

    def miss(self, area: str, what: str, source: str, run: str | None, why: str) -> None:
        """Record what the source says and no field of its pods does, and that the run has something else."""
        self.unmet.append(UnmetFact(area, what, source, run, why))

    def refuse(self, rule: Rule, node: SourceNode, message: str, help: str) -> None:
        """Report what makes a spec impossible."""
        node.account.mark(node.path, "asked", "", message)
        self.refusals.append(Finding(rule, node.where, message, help))

    def suggest(
        self,
        file: str,
        path: tuple[str, ...],
        value: Any,
        why: str,
        node: SourceNode | None,
        is_open: bool = False,
    ) -> None:
        """Suggest what a file of the workspace must gain; once, even if it is suggested several times."""
        where = node.where if node is not None else Location(self.work.account.file)
        one = Suggestion(file, path, value, why, where, is_open)
        if not any((kept.file, kept.path, kept.value) == (file, path, value) for kept in self.suggestions):
            self.suggestions.append(one)

    @property
    def team_file(self) -> str:
        """The path of the team's own file."""
        return f"specs/{self.home.team}/team.yaml"

    @property
    def file(self) -> str:
        """The path of the spec."""
        return f"specs/{self.home.team}/{self.name}.yaml"

    def ordered(self) -> dict[str, Any]:
        """Return the values in the order of the format."""
        order = [one.alias or name for name, one in TrainingJob.model_fields.items()]
        return {name: self.values[name] for name in order if name in self.values}
