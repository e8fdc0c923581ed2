"""The origins of the fields of applied policies, bindings and parameter objects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gangplan.findings import FieldPath, Location
from gangplan.objects import BINDING_KIND, POLICY_KIND, Body
from gangplan.packs.facts import PACK_FACTS
from gangplan.packs.model import FactParam
from gangplan.policy.choose import FABRICS_PARAMETER, ChosenPolicy
from gangplan.policy.export import AppliedObject, build_applied_policy_objects, choose_server_action
from gangplan.policy.guards import CONTROLLER_CONDITION, DELETION_CONDITION
from gangplan.records import dataclass
from gangplan.resolve.facts import STATED_FACTS
from gangplan.source import Document
from gangplan.trace import Cause, Tracer
from gangplan.trace.cause import Trace, build_trace_from_causes, mark_indirect
from gangplan.trace.files import TracedFiles, build_own_cause, find_value_at
from gangplan.validate.problems import format_path
from gangplan.workspace import Workspace

# The namespaces that a binding selects, and the fields of the cluster's file that exempt some (exempt.py).
_HOMES: FieldPath = ("spec", "matchResources", "namespaceSelector")
PACK = "gangplan.dev/pack"
_OF_LEVELS: tuple[FieldPath, ...] = (("fabrics",), ("nodePools",), ("teams",))


def build_policy_tracer(workspace: Workspace, cluster: str, bodies: Sequence[Body]) -> Tracer:
    """Return the tracer of the cluster's policy objects; `bodies` are these objects in order."""
    document = workspace.clusters[cluster].document
    made = build_applied_policy_objects(workspace, cluster)

    def tracer(index: int, path: FieldPath) -> Trace:
        place = _Place(workspace, cluster, TracedFiles(cluster=document), made[index], bodies[index])
        return build_trace_from_causes(place.causes(path), Location(document.file, 1, 1))

    return tracer


@dataclass(frozen=True, slots=True)
class _Place:
    """One object, and the files that it comes from."""

    workspace: Workspace
    name: str
    files: TracedFiles
    made: AppliedObject
    body: Body

    @property
    def chosen(self) -> ChosenPolicy | None:
        """The chosen policy of a pack that the object belongs to."""
        return self.made.chosen

    def causes(self, path: FieldPath) -> list[Cause]:
        """Return what decided a field; for the name, also what put the object on the cluster."""
        packs = [self.files.cause("cluster", "policies", "packs").aside()]
        labels = self.chosen.source.body["metadata"].get("labels") if self.chosen else None
        if (labels or {}).get(PACK) == FABRICS_PARAMETER:
            packs += [self.files.cause("cluster", *field).aside() for field in _OF_LEVELS]
        is_named = path in ((), ("metadata", "name")) and self.chosen is not None
        return [*self._causes(path), *(packs if is_named else ())]

    def _causes(self, path: FieldPath) -> Iterator[Cause]:
        kind, source = self.body.get("kind"), self.made.source
        document = None if source.is_shipped else source.document
        if path[:2] == ("metadata", "annotations"):
            yield build_own_cause("the wave in which engines apply it, and the file that it comes from")
        elif path == ("spec", "validationActions") or path[:2] == ("spec", "validationActions"):
            yield from self._action()
        elif kind == POLICY_KIND and path[:2] == ("spec", "matchConditions") and self._is_guard(path):
            yield build_own_cause("what ends and what controllers do is left alone")
            yield self.files.cause("cluster", "policies", "controllers").aside()
        elif document is not None:
            yield from _trace_policy_field(document, self._before(path))
        elif self.chosen and path[:1] == ("data",) and len(path) == 2:
            yield from self._param(self.chosen, str(path[1]))
        elif kind == BINDING_KIND and self.chosen and path[:3] == _HOMES and self.chosen.excused:
            yield build_own_cause("namespaces whose level admits what a fabric needs are left alone")
            yield from (self.files.cause("cluster", *field).aside() for field in _OF_LEVELS)
        elif kind == BINDING_KIND and self.chosen:
            label = self.chosen.label
            yield build_own_cause(
                f"it holds for what bears gangplan.dev/{label}" if label else "it holds for every team"
            )
        else:
            words = (
                "the policy comes with gangplan" if kind == POLICY_KIND else "gangplan makes it of the pack"
            )
            yield build_own_cause(words)

    def _is_guard(self, path: FieldPath) -> bool:
        condition = find_value_at(self.body, path[:3]) if len(path) > 2 else None
        return not isinstance(condition, dict) or condition.get("name") in (
            DELETION_CONDITION,
            CONTROLLER_CONDITION,
        )

    def _before(self, path: FieldPath) -> FieldPath:
        """Return a path as it is in the object's own file, without gangplan's conditions."""
        if path[:2] != ("spec", "matchConditions") or len(path) < 3 or not isinstance(path[2], int):
            return path
        own_count = len(find_value_at(self.made.source.body, path[:2]) or ())
        ours = len(find_value_at(self.body, path[:2]) or ()) - own_count
        return (*path[:2], path[2] - ours, *path[3:])

    def _action(self) -> Iterator[Cause]:
        settings = self.workspace.clusters[self.name].spec.policies
        enforcement = self.files.cause("cluster", "policies", "enforcement")
        if self.made.source.document is not None:
            yield from mark_indirect(
                _trace_policy_field(self.made.source.document, ("spec", "validationActions"))
            )
        elif self.chosen is not None:
            stated = self.files.cause("cluster", "policies", "actions", self.chosen.policy)
            is_capped = choose_server_action(self.chosen.action, settings.enforcement) != self.chosen.action
            is_shown = stated.is_written and not is_capped
            yield (
                stated
                if is_shown
                else build_own_cause("what the pack says, and at most what the cluster enforces")
            )
            yield stated.aside()
        yield enforcement.aside()

    def _param(self, chosen: ChosenPolicy, key: str) -> Iterator[Cause]:
        origin = chosen.origins.get(key)
        stated = self.files.cause("cluster", "policies", "params", chosen.policy, key)
        if isinstance(origin, FactParam):
            meaning = PACK_FACTS[origin.fact].meaning if origin.fact in PACK_FACTS else origin.fact
            yield build_own_cause(f"filled in from the cluster: {meaning}".replace("`", ""))
            yield from mark_indirect([*self._fact(origin.fact), stated])
        elif origin is not None:
            yield stated
        else:
            yield build_own_cause("the pack's own value")
            yield stated.aside()

    def _fact(self, fact: str) -> Iterator[Cause]:
        """Yield the files or fields that a fact is read from."""
        if fact in STATED_FACTS:
            yield self.files.cause("cluster", *STATED_FACTS[fact])
        else:
            yield from (
                _build_whole_file_cause(self.files.cluster),
                *map(_build_whole_file_cause, self._others()),
            )

    def _others(self) -> Iterator[Document | None]:
        teams = self.workspace.clusters[self.name].spec.teams
        yield from (one.document for name, one in self.workspace.teams.items() if name in teams)
        yield from (one.document for one in self.workspace.waivers)
        yield self.workspace.catalog_document


def _trace_policy_field(document: Document, path: FieldPath) -> Iterator[Cause]:
    """Yield the cause of a field of a workspace's own file; the API server fills in what the file omits."""
    if find_value_at(document.value, path) is None:
        yield build_own_cause("what the API server fills in")
    else:
        words = f"{format_path(path) or 'the object'} in {document.file}"
        yield Cause(document.where(path), words, document.file, path)


def _build_whole_file_cause(document: Document | None) -> Cause:
    """Return a cause for a whole file, one of several that a fact is read from."""
    if document is None:
        return build_own_cause("the catalog")
    return Cause(document.where(()), f"read from {document.file}", document.file, (), True, False)
