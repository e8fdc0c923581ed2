"""One sync of a cluster: apply what Git has, and prune what left Git.

Parts come one after the other, because queues and policies must be in force before what needs them. Within a
part, groups do not wait for each other: a fault of one team stops no other. Refused objects are tried again
for half a minute, because controllers and webhooks learn of an object later than the API server (Trainer
refuses a run until its cache has the runtime).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field

from gangplan.errors import ToolError
from gangplan.live.access import ApiRefusedError
from gangplan.live.served import KindCatalog
from gangplan.model.syncing import NEVER_PRUNED, PRUNE_CONFIRMED
from gangplan.objects import Body, Ref
from gangplan.records import dataclass
from gangplan.sync import inventory
from gangplan.sync.inventory import Inventory, InventoryEntry
from gangplan.sync.tree import (
    TREE_PARTS,
    ApplyMethod,
    SyncGroup,
    SyncItem,
    find_prune_guards,
    is_record,
    wave_of,
)
from gangplan.sync.writer import ClusterWriter

#: Requests at once: as many as a browser makes to one server.
_AT_ONCE = 6
#: Seconds to wait before each attempt to apply refused groups.
PAUSES_S = (0, 1, 2, 4, 8, 15)
#: Seconds that the deletion of a run may take, before its record replaces it.
_GOES_S = 120
_OURS = ("app.kubernetes.io/managed-by", "gangplan")


@dataclass(frozen=True, slots=True)
class RefusedObject:
    """An object, and why the API server refused it."""

    item: SyncItem
    error: ApiRefusedError


@dataclass(slots=True)
class SyncOutcome:
    """What a sync did: how many objects were `created`, `applied`, `replaced` or `left` as they are.

    `untried` are units after a part that failed. What left Git was `pruned`, or is `kept` because it says so
    itself or is no longer ours, or is `unconfirmed`: a person has to agree.
    """

    counts: Counter[str] = field(default_factory=Counter)
    refused: list[RefusedObject] = field(default_factory=list)
    untried: list[str] = field(default_factory=list)
    pruned: list[Ref] = field(default_factory=list)
    kept: list[Ref] = field(default_factory=list)
    unconfirmed: list[Ref] = field(default_factory=list)


def sync_cluster(
    writer: ClusterWriter,
    before: Inventory,
    groups: Sequence[SyncGroup],
    revision: str,
    is_confirmed: bool = False,
    blocked: Collection[str] = (),
    pause: Callable[[float], None] = time.sleep,
) -> SyncOutcome:
    """Apply the groups, then prune what is in the inventory but not in them.

    With `is_confirmed`, objects that need confirmation are pruned, too. Nothing is pruned from units that are
    `blocked`, and nothing that needs them is applied. Raises ToolError if the server cannot be reached, if
    another sync has started, and if a kind is not served.
    """
    now = frozenset(InventoryEntry(group.unit, item.ref) for group in groups for item in group.items)
    # Written first: a sync that is killed has applied nothing that the inventory does not list.
    begun = inventory.write_inventory(writer, before, before.revision, before.entries | now)
    work = _Sync(writer, KindCatalog(writer), SyncOutcome(), pause)
    work.apply_all(groups, blocked)
    if inventory.read_inventory(writer, before.cluster, before.namespace).version != begun.version:
        raise ToolError(f"another sync of {before.cluster} has begun meanwhile", "It goes on from here.")
    failed = {*blocked, *work.outcome.untried, *(one.unit for one in groups if work.has_failed(one))}
    there = {
        _build_object_identity(one.ref) for one in now
    }  # perhaps in another file, or another version of its API
    gone = [
        one
        for one in begun.entries - now
        if one.unit not in failed and _build_object_identity(one.ref) not in there
    ]
    left = work.prune(gone, is_confirmed)
    done = revision if not failed else before.revision
    stay = [one for one in begun.entries - now if one.unit in failed]
    inventory.write_inventory(writer, begun, done, {*now, *left, *stay})
    return work.outcome


def _build_object_identity(ref: Ref) -> tuple[str, str, str, str]:
    return ref.api_version.rpartition("/")[0], ref.kind, ref.namespace, ref.name


class _Sync:
    def __init__(
        self,
        writer: ClusterWriter,
        catalog: KindCatalog,
        outcome: SyncOutcome,
        pause: Callable[[float], None],
    ) -> None:
        self.writer, self.catalog, self.outcome, self.pause = writer, catalog, outcome, pause
        self._failed: set[SyncGroup] = set()

    def has_failed(self, group: SyncGroup) -> bool:
        return group in self._failed

    def apply_all(self, groups: Sequence[SyncGroup], blocked: Collection[str]) -> None:
        """Apply the parts in order, as far as what each needs was applied."""
        bad = {unit.partition("/")[2] for unit in blocked if not unit.startswith("runs/")}
        for part in TREE_PARTS:
            those = [group for group in groups if group.part == part]
            ready, stopped = [], set()
            for one in those:
                if "" in bad or (part == "runs" and one.team in bad):
                    stopped.add(one.unit)
                else:
                    ready.append(one)
            self.outcome.untried += sorted(stopped)
            for group in self._part(ready):
                self._failed.add(group)
                if part != "runs":
                    bad.add(group.team)

    def _part(self, groups: Sequence[SyncGroup]) -> list[SyncGroup]:
        """Apply groups, with retries, and return those that are still refused at the last attempt."""
        pending, said = list(groups), {}
        for seconds in PAUSES_S:
            if not pending:
                return []
            self.pause(seconds)
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                answers = list(pool.map(self._group, pending))
            said = {group: answer for group, answer in zip(pending, answers, strict=True) if answer[1]}
            for group, (counts, _) in zip(pending, answers, strict=True):
                if group not in said:
                    self.outcome.counts += counts
            pending = list(said)
        for counts, refused in said.values():
            self.outcome.counts += counts
            self.outcome.refused += refused
        return pending

    def _group(self, group: SyncGroup) -> tuple[Counter[str], list[RefusedObject]]:
        counts: Counter[str] = Counter()
        refused: list[RefusedObject] = []
        wave: int | None = None
        for item in group.items:
            if refused and item.wave != wave:
                break  # later waves need this one
            wave = item.wave
            try:
                counts[self._item(item)] += 1
            except ApiRefusedError as error:
                refused.append(RefusedObject(item, error))
        return counts, refused

    def _item(self, item: SyncItem) -> str:
        """Apply one object, and return what was done."""
        if item.way is ApplyMethod.NEVER:
            return "left"
        path = self._path(item.body)
        if item.way is not ApplyMethod.APPLY:
            live = self.writer.find(path)
            if live is not None and (item.way is ApplyMethod.ONCE or is_record(live)):
                return "left"
            if live is not None:
                self._replace(path, live, item.body)
                return "replaced"
        return "created" if self.writer.apply(path, item.body) else "applied"

    def _replace(self, path: str, live: Body, body: Body) -> None:
        self.writer.remove(path, live["metadata"]["uid"])
        end = time.monotonic() + _GOES_S
        while (found := self.writer.find(path)) is not None and found["metadata"]["uid"] == live["metadata"][
            "uid"
        ]:
            if time.monotonic() > end:
                raise ToolError(
                    f"{body['kind']} {body['metadata']['name']} does not go: a controller holds it",
                    f"Look at its finalizers: {', '.join(found['metadata'].get('finalizers') or ['none'])}.",
                )
            time.sleep(0.2)
        self.writer.apply(path, body)

    def _path(self, body: Body) -> str:
        served = self.catalog.find(body)
        if served is None:
            kind = f"{body['kind']} ({body['apiVersion']})"
            raise ToolError(f"the cluster does not serve {kind}", "Install what serves it.")
        return served.path(body)

    def prune(self, entries: Sequence[InventoryEntry], is_confirmed: bool) -> list[InventoryEntry]:
        """Delete what left Git, last waves first, and return the entries that stay in the inventory."""
        left, doomed = [], []
        for entry, path, live in self._living(entries):
            guards = find_prune_guards(live)
            if not _is_ours(live):
                self.outcome.kept.append(entry.ref)
                continue
            if guards and not (is_confirmed and guards == {PRUNE_CONFIRMED}):
                never = NEVER_PRUNED in guards
                (self.outcome.kept if never else self.outcome.unconfirmed).append(entry.ref)
                left.append(entry)
                continue
            doomed.append((wave_of(live), entry, path, live))
        for _, entry, path, live in sorted(doomed, key=lambda one: (-one[0], one[1])):
            self.writer.remove(path, live["metadata"]["uid"])
            self.outcome.pruned.append(entry.ref)
        return left

    def _living(self, entries: Sequence[InventoryEntry]) -> Iterator[tuple[InventoryEntry, str, Body]]:
        for entry in sorted(entries):
            ref = entry.ref
            meta = {"name": ref.name, **({"namespace": ref.namespace} if ref.namespace else {})}
            served = self.catalog.find({"apiVersion": ref.api_version, "kind": ref.kind})
            if served is None:
                continue  # without its kind, the object is gone, too
            path = served.path({"metadata": meta})
            live = self.writer.find(path)
            if live is not None and not live["metadata"].get("deletionTimestamp"):
                yield entry, path, live


def _is_ours(live: Body) -> bool:
    name, value = _OURS
    return bool((live["metadata"].get("labels") or {}).get(name) == value)
