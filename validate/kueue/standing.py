"""The objects of a cluster as Kueue's cache sees them: queues with their state, flavors, topologies.

Source: Kueue v0.19.2 pkg/cache/scheduler/clusterqueue.go (updateQueueStatus, inactiveReason); v0.15.2 and
v0.18.2 have the same conditions. Read once per world.
"""

from __future__ import annotations

from collections.abc import KeysView, Mapping, Sequence

from gangplan.kueue import model as kueue
from gangplan.kueue.hierarchy import find_cohort_ancestors, is_in_cohort_cycle
from gangplan.kueue.tree import QuotaTree
from gangplan.objects import Body
from gangplan.records import dataclass
from gangplan.validate.kueue.domains import Flavors
from gangplan.validate.kueue.members import parents_of, read_quota_setup_of_cluster
from gangplan.validate.kueue.requests import LimitRanges
from gangplan.validate.world import ObjectIndex, World

PROVISIONING = "kueue.x-k8s.io/provisioning-request"
MULTIKUEUE = "kueue.x-k8s.io/multikueue"


@dataclass(frozen=True, slots=True)
class QueueState:
    """A ClusterQueue with its quotas and rules.

    `inactive` is why it admits nothing; `delayed` are flavors whose nodes are provisioned on demand.
    """

    name: str
    body: Body
    quotas: kueue.ClusterQueue
    inactive: str
    is_topology_only: bool
    is_multikueue: bool
    delayed: frozenset[str]
    is_concurrent: bool


class KueueWorld:
    """The objects of a world, indexed for the solver."""

    def __init__(self, world: World) -> None:
        """Read everything except the runs. Objects must fit their schemas."""
        self._index, self.manager = world.once(ObjectIndex), world.manager
        self.setup = read_quota_setup_of_cluster(world)
        self.idle = QuotaTree(self.setup.queues, self.setup.cohorts)
        self._cohorts = parents_of(self.setup.cohorts)
        self.flavors = Flavors(self.all("ResourceFlavor"), self.all("Topology"), world.nodes)
        self.overheads = {
            body["metadata"]["name"]: (body.get("overhead") or {}).get("podFixed") or {}
            for body in self.all("RuntimeClass")
        }
        self._ranges: dict[str, LimitRanges] = {}
        self._owners: dict[tuple[int, frozenset[kueue.FlavorResource], bool], KeysView[str]] = {}
        self.quotas = {one.name: one for one in self.setup.queues}
        self._queues: dict[str, QueueState] = {}

    def all(self, kind: str) -> list[Body]:
        """Return the objects of a kind."""
        return list(self._index.of(kind).every)

    def find(self, kind: str, name: str, namespace: str = "") -> Body | None:
        """Return an object by name, or None."""
        return self._index.of(kind).places.get((name, namespace or None))

    def queue(self, name: str) -> QueueState | None:
        """Return a ClusterQueue by name, or None."""
        body, quotas = self.find("ClusterQueue", name), self.quotas.get(name)
        if body is None or quotas is None:
            return None
        if name not in self._queues:
            self._queues[name] = self._queue(body, quotas)
        return self._queues[name]

    def around(self, queue: str) -> list[Body]:
        """Return a ClusterQueue with its flavors, its admission checks and the cohorts above it."""
        standing = self.queue(queue)
        if standing is None:
            return []
        spec, quotas = standing.body.get("spec") or {}, standing.quotas
        names = [("ResourceFlavor", flavor) for group in quotas.groups for flavor in group.flavors]
        names += [("AdmissionCheck", check["name"]) for check in _list_admission_checks(spec)]
        names += [("Cohort", name) for name in find_cohort_ancestors(self._cohorts, quotas.parent)[0]]
        found = [self.find(kind, name) for kind, name in names]
        return [standing.body, *(one for one in found if one is not None)]

    def others_of(self, name: str) -> list[kueue.ClusterQueue]:
        """Return the other queues of a queue's tree of cohorts; there are as many as teams."""
        tree, number = self.idle, self.idle.numbers[name]
        below = sorted(tree.queues_below(tree.root(number)))
        return [self.setup.queues[one] for one in below if one != number]

    def within(self, kind: str, namespace: str) -> Sequence[Body]:
        """Return the objects of a kind in a namespace: LimitRanges or ResourceQuotas."""
        return self._index.of(kind).homes.get(namespace or None, ())

    def owners(
        self, queue: str, keys: frozenset[kueue.FlavorResource], can_be_outranked: bool
    ) -> KeysView[str]:
        """Return the queues in a queue's tree of cohorts that may reclaim any of these flavors and resources.

        The queue itself may be among them. `can_be_outranked`: some run may have a higher priority than the
        borrower. A tree has as many members as teams and nearly every run borrows, so the list is built once
        for all runs that borrow the same.
        """
        root = self.idle.root(self.idle.numbers[queue])
        known = self._owners.get((root, keys, can_be_outranked))
        if known is None:
            policies = ("Any", "LowerPriority") if can_be_outranked else ("Any",)
            below = (self.setup.queues[one] for one in sorted(self.idle.queues_below(root)))
            known = self._owners[root, keys, can_be_outranked] = {
                one.name: None
                for one in below
                if one.preemption.reclaim in policies and any(one.nominal.get(key, 0) > 0 for key in keys)
            }.keys()
        return known

    def ranges(self, namespace: str) -> LimitRanges:
        """Return the LimitRanges of a namespace."""
        if namespace not in self._ranges:
            self._ranges[namespace] = LimitRanges(self.within("LimitRange", namespace))
        return self._ranges[namespace]

    def _queue(self, body: Body, quotas: kueue.ClusterQueue) -> QueueState:
        spec = body.get("spec") or {}
        names = [flavor for group in quotas.groups for flavor in group.flavors]
        controllers = {
            name: (check["spec"]["controllerName"] if check else self._elsewhere(name))
            for name, check in (
                (one["name"], self.find("AdmissionCheck", one["name"]))
                for one in _list_admission_checks(spec)
            )
        }
        return QueueState(
            quotas.name,
            body,
            quotas,
            self._inactive(spec, quotas.parent, names, controllers),
            bool(names) and all(self.flavors.topology_name(name) for name in names),
            MULTIKUEUE in controllers.values(),
            frozenset(self._delayed(spec, names, controllers)),
            bool(spec.get("concurrentAdmissionPolicy")) and self.manager.is_concurrent,
        )

    def _elsewhere(self, check: str) -> str:
        """Return a placeholder controller for a check that is created outside gangplan, or ""."""
        return "(external)" if check in self.manager.external_checks else ""

    def _delayed(self, spec: Body, names: Sequence[str], controllers: Mapping[str, str]) -> list[str]:
        """Return the flavors whose nodes are provisioned on demand."""
        return [
            flavor
            for check in _list_admission_checks(spec)
            if controllers[check["name"]] == PROVISIONING
            for flavor in check.get("onFlavors") or names
        ]

    def _inactive(
        self, spec: Body, parent: str, flavors: Sequence[str], controllers: Mapping[str, str]
    ) -> str:
        """Return why the queue admits nothing, in the words of its condition Active; "" if it is active."""
        said = []
        if (spec.get("stopPolicy") or "None") != "None":
            said.append("is stopped")
        for words, names in (
            ("references missing ResourceFlavor(s)", [one for one in flavors if one not in self.flavors]),
            (
                "references missing AdmissionCheck(s)",
                sorted(one for one in controllers if not controllers[one]),
            ),
            (
                "references inactive AdmissionCheck(s)",
                sorted(one for one in controllers if self._is_idle(one)),
            ),
        ):
            if names:
                said.append(f"{words}: {','.join(names)}")
        said += self._multikueue(spec, flavors, controllers)
        if MULTIKUEUE not in controllers.values():
            said += [
                f'there is no Topology "{self.flavors.topology_name(one)}" for TAS flavor "{one}"'
                for one in flavors
                if self.flavors.topology_name(one) and self.flavors.tree(one) is None
            ]
        if said:
            return f"Can't admit new workloads: {', '.join(said)}."
        return "the cohorts above it form a cycle" if is_in_cohort_cycle(self._cohorts, parent) else ""

    def _is_idle(self, check: str) -> bool:
        """Return whether one of Kueue's own checks lacks its parameters."""
        body = self.find("AdmissionCheck", check)
        if body is None or body["spec"]["controllerName"] not in (PROVISIONING, MULTIKUEUE):
            return False
        parameters = body["spec"].get("parameters") or {}
        if not parameters or self.find(parameters["kind"], parameters["name"]) is None:
            return True
        if body["spec"]["controllerName"] == PROVISIONING:
            return False
        config = self.find(parameters["kind"], parameters["name"]) or {}
        clusters = (config.get("spec") or {}).get("clusters") or ()
        return not any(self.find("MultiKueueCluster", name) for name in clusters)

    def _multikueue(self, spec: Body, flavors: Sequence[str], controllers: Mapping[str, str]) -> list[str]:
        several = sorted(name for name, controller in controllers.items() if controller == MULTIKUEUE)
        said = []
        if len(several) > 1:
            found = ",".join(several)
            said.append(
                f"Cannot use multiple MultiKueue AdmissionChecks on the same ClusterQueue, found: {found}"
            )
        partly = sorted(
            check["name"]
            for check in _list_admission_checks(spec)
            if check["name"] in several and set(check.get("onFlavors") or flavors) != set(flavors)
        )
        if partly:
            said.append(f"Cannot specify MultiKueue AdmissionCheck per flavor, found: {','.join(partly)}")
        nodes = sorted(name for name, controller in controllers.items() if controller == PROVISIONING)
        if several and nodes:
            said.append(
                "Cannot use both MultiKueue and ProvisioningRequest AdmissionChecks together, found:"
                f" {','.join(several)}, {','.join(nodes)}"
            )
        return said


def _list_admission_checks(spec: Body) -> list[Body]:
    strategy = spec.get("admissionChecksStrategy") or {}
    return list(strategy.get("admissionChecks") or ())


def read_kueue_world(world: World) -> KueueWorld:
    """Return the world as Kueue sees it, read once."""
    return world.once(KueueWorld)
