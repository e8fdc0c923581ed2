"""Checks that a cluster's queues, ResourceQuotas and LimitRanges agree: no quota promises more than the nodes
have, and nothing that Kueue admits is refused afterwards.

They read all built objects that a cluster has before any run, patches included.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gangplan.kueue.hierarchy import find_cohort_cycle
from gangplan.kueue.model import ClusterQueue, FlavorResource, Member
from gangplan.kueue.tree import QuotaTree
from gangplan.kueue.units import KUEUE_PODS, MOST_INT64, NANO
from gangplan.model.amounts import format_amount, format_for_spec, format_with_unit
from gangplan.model.manager import UNCONFIGURED_MANAGER, ManagerSettings, format_claim_quota_key
from gangplan.model.quantity import ZERO, Quantity
from gangplan.objects import Body
from gangplan.rules.objects import BOUNDS_UNCOVERED
from gangplan.rules.quotas import HARD_QUOTA_BELOW_QUEUE, PRIORITIES_OUT_OF_ORDER, QUOTA_OVER_CAPACITY
from gangplan.rules.teams import STORAGE_ACCESS_MODE, STORAGE_CLASS_UNKNOWN
from gangplan.rules.volumes import VOLUME_OVER_QUOTA
from gangplan.spec.near import suggest_nearest
from gangplan.validate import rights
from gangplan.validate.apiserver.forms import FoundProblems, parse_accepted_amount
from gangplan.validate.kueue import queues
from gangplan.validate.kueue.members import split_members
from gangplan.validate.kueue.queues import QueueIndex
from gangplan.validate.problems import Problem

# flavor -> resource -> what the flavor's nodes have of it
Offered = Mapping[str, Mapping[str, Quantity]]
NO_LEVELS: Mapping[str, str] = {}
# storage class -> its access modes
StorageModes = Mapping[str, Sequence[str]]
NO_STORAGE: StorageModes = {}


def judge_agreement_of_cluster_objects(
    bodies: Sequence[Body],
    offered: Offered | None,
    levels: Mapping[str, str] = NO_LEVELS,
    manager: ManagerSettings = UNCONFIGURED_MANAGER,
    generated: Sequence[Body] = (),
    storage: StorageModes = NO_STORAGE,
) -> list[list[Problem]]:
    """Return the problems of each object that a cluster has before any run.

    `offered` is None if quotas may exceed it. `levels` are the Pod Security levels beyond restricted that the
    cluster's file states, by namespace. `generated` are the same objects before any patch, if they differ.
    `storage` has the access modes of the cluster's storage classes.
    """
    index = QueueIndex(bodies, manager.external_checks)
    found = [
        [*queues.check_queue_references(body, index), *rights.check_wide_rights(body, index, levels, was)]
        for body, was in zip(bodies, generated or bodies, strict=True)
    ]
    if any(found) or any(find_cohort_cycle(index.parents, name) for name in index.names("Cohort")):
        return found
    if generated:
        for place, problem in _check_order_of_priorities(bodies, generated):
            found[place].append(problem)
        for wrong, body, was in zip(found, bodies, generated, strict=True):
            if body["kind"] == "PersistentVolumeClaim" and body["spec"] != was["spec"]:
                wrong += _check_storage_of_claim(body["spec"], storage)
    books = _Books(index.members)
    for place, body in enumerate(bodies):
        if body["kind"] == "ResourceQuota":
            found[place] += _check_resource_quota_cap(body, index, books, manager)
            found[place] += _check_resource_quota_of_claims(body, bodies)
        elif body["kind"] == "LimitRange":
            found[place] += _check_limit_range_coverage(body, index, manager)
        elif body["kind"] in ("ClusterQueue", "Cohort") and offered is not None:
            found[place] += _check_quota_objects_fit_flavor_nodes(body, books, offered)
    return found


class _Books:
    """The sum of all nominal quotas by flavor and resource, and what a queue can get, in billionths."""

    def __init__(self, members: Sequence[Member]) -> None:
        self.tree = QuotaTree(*split_members(members), MOST_INT64 * NANO)
        self.promised: dict[FlavorResource, int] = {}
        self.last: dict[FlavorResource, tuple[str, str]] = {}
        for one in members:
            for key, nominal in one.nominal.items():
                self.promised[key] = self.promised.get(key, 0) + nominal
                if nominal:
                    kind = "ClusterQueue" if isinstance(one, ClusterQueue) else "Cohort"
                    self.last[key] = (kind, one.name)


def _list_namespace_queues(namespace: str, index: QueueIndex) -> list[Body]:
    """Return the ClusterQueues that a namespace's LocalQueues point to."""
    targets = sorted(index.queues_of.get(namespace, ()))
    return [index.names("ClusterQueue")[name] for name in targets if name in index.names("ClusterQueue")]


def _check_resource_quota_cap(
    body: Body, index: QueueIndex, books: _Books, manager: ManagerSettings
) -> FoundProblems:
    """Check that a ResourceQuota is not below what the queue may admit.

    Admitted runs would wait for pods (kueue#1403).
    """
    spec = body["spec"]
    if spec.get("scopes") or spec.get("scopeSelector"):
        return
    claimed = {format_claim_quota_key(one): resource for one, resource in manager.device_classes}
    for queue in _list_namespace_queues(body["metadata"].get("namespace", ""), index):
        name = queue["metadata"]["name"]
        for key, hard in sorted((spec.get("hard") or {}).items()):
            resource = claimed.get(key) or key.removeprefix("requests.")
            flavors = _list_flavors_with_resource(queue, resource)
            if not flavors or key.startswith("limits."):
                continue
            most = Quantity(sum(books.tree.most(name, (flavor, resource)) for flavor in flavors))
            if parse_accepted_amount(hard) < most:
                yield Problem(
                    ("spec", "hard", key),
                    f"{format_amount(resource, parse_accepted_amount(hard))} is below the {format_amount(resource, most)} that queue '{name}' may admit: an admitted run would wait"
                    " for its pods forever",
                    rule=HARD_QUOTA_BELOW_QUEUE,
                )


def _check_resource_quota_of_claims(body: Body, bodies: Sequence[Body]) -> FoundProblems:
    """Check that a ResourceQuota has room for the claims of its namespace; runs' own ones come on top.

    Kubernetes v1.34, pkg/quota/v1/evaluator/core/persistent_volume_claims.go. Scopes select pods only.
    """
    spec, home = body["spec"], body["metadata"].get("namespace")
    if spec.get("scopes") or spec.get("scopeSelector"):
        return
    needed: dict[str, int] = {}
    for claim in bodies:
        if claim["kind"] != "PersistentVolumeClaim" or claim["metadata"].get("namespace") != home:
            continue
        requests = (claim["spec"].get("resources") or {}).get("requests") or {}
        size = parse_accepted_amount(requests.get("storage", 0)).nano
        of = f"{claim['spec'].get('storageClassName') or ''}.storageclass.storage.k8s.io/"
        for key, amount in (("requests.storage", size), ("persistentvolumeclaims", NANO)):
            for one in (key, of + key):
                needed[one] = needed.get(one, 0) + amount
    needed["count/persistentvolumeclaims"] = needed.get("persistentvolumeclaims", 0)
    for key, amount in sorted((spec.get("hard") or {}).items()):
        hard = parse_accepted_amount(amount)
        if needed.get(key, 0) > hard.nano:
            yield _report_quota_below_claims(key, hard, Quantity(needed[key]))


def _report_quota_below_claims(key: str, hard: Quantity, needed: Quantity) -> Problem:
    of, _, counted = key.rpartition(".storageclass.storage.k8s.io/")
    which = f" of storage class '{of}'" if of else ""
    if counted == "requests.storage":
        said = f"need {format_with_unit('storage', needed)}{which}, and the namespace may request"
        most, amount = format_amount("storage", hard), format_for_spec("storage", needed)
    else:
        most, amount = format_amount(counted, hard), format_amount(counted, needed)
        said = f"are {amount}{which}, and the namespace may hold"
    help = f'Write {key}: "{amount}" or more, or remove claims.'
    if of and counted == "requests.storage":
        help = (
            f"Write hardQuota: {{storage: {{{of}: {amount}}}}} or more for the team, or use smaller claims."
        )
    said = f"the team's claims {said} {most}: the API server refuses a claim"
    return Problem(("spec", "hard", key), said, help, VOLUME_OVER_QUOTA)


def _list_flavors_with_resource(queue: Body, resource: str) -> list[str]:
    return [
        flavor["name"]
        for group in queue["spec"].get("resourceGroups") or ()
        if resource in group["coveredResources"]
        for flavor in group["flavors"]
    ]


def _check_limit_range_coverage(body: Body, index: QueueIndex, manager: ManagerSettings) -> FoundProblems:
    """Check that the queue covers what a LimitRange adds to containers.

    Otherwise Kueue admits nothing (kueue#4848).
    """

    def counts(resource: str) -> bool:
        rule = manager.of(resource)
        return not manager.is_excluded(resource) and not (rule and rule.replaces)

    for queue in _list_namespace_queues(body["metadata"].get("namespace", ""), index):
        covered = {
            resource
            for group in queue["spec"].get("resourceGroups") or ()
            for resource in group["coveredResources"]
        }
        for place, limit in enumerate(body["spec"].get("limits") or ()):
            if limit.get("type") != "Container":
                continue
            # A max without a default becomes the default (core/v1 defaults.go, Kubernetes v1.34).
            for field in ("default", "defaultRequest", "max"):
                for resource in sorted(filter(counts, set(limit.get(field) or {}) - covered)):
                    yield Problem(
                        ("spec", "limits", place, field, resource),
                        f"every container would ask for {resource}, which queue '{queue['metadata']['name']}' does"
                        " not cover: none of its runs would ever be admitted",
                        rule=BOUNDS_UNCOVERED,
                    )


def _check_order_of_priorities(
    bodies: Sequence[Body], generated: Sequence[Body]
) -> Iterator[tuple[int, Problem]]:
    """Check that patched priorities of Kueue keep the order that they are rendered in; once for each object.

    Other numbers in the same order are fine. A higher number goes first, and may preempt (Kueue v0.19).
    """
    classes = [
        (place, body["metadata"]["name"], was["value"], body["value"])
        for place, (body, was) in enumerate(zip(bodies, generated, strict=True))
        if body["kind"] == was["kind"] == "WorkloadPriorityClass"
    ]
    for place, name, was, value in classes:
        wrong = next((one for one in classes if was < one[2] and value >= one[3]), None)
        lower = next((one for one in classes if was > one[2] and value <= one[3]), None)
        changed, other = (wrong, "below") if wrong else (lower, "above")
        if value != was and changed:
            said = f"priority '{name}' has value {value}, which is not {other} '{changed[1]}' ({changed[3]}):"
            said += " Kueue would admit and preempt runs in another order than specs say"
            help = f"Keep value: {was}, or a value {other} that of '{changed[1]}'."
            yield place, Problem(("value",), said, help, PRIORITIES_OUT_OF_ORDER)


def _check_storage_of_claim(spec: Body, storage: StorageModes) -> FoundProblems:
    """Check that a class of the cluster provisions a patched claim. One that names its volume needs none."""
    name = spec.get("storageClassName")
    if not name or spec.get("volumeName"):
        return
    if name not in storage:
        said = f"storage class '{name}' is not declared for this cluster: the claim and its pods would wait"
        yield Problem(
            ("spec", "storageClassName"), said, suggest_nearest(name, storage), STORAGE_CLASS_UNKNOWN
        )
        return
    for index, mode in enumerate(spec.get("accessModes") or ()):
        if mode not in storage[name]:
            said = f"storage class '{name}' does not offer {mode}"
            help = f"It offers {', '.join(storage[name])}."
            yield Problem(("spec", "accessModes", index), said, help, STORAGE_ACCESS_MODE)


def _check_quota_objects_fit_flavor_nodes(body: Body, books: _Books, offered: Offered) -> FoundProblems:
    """Check that quotas do not exceed a flavor's nodes; report it once, at the last object with a quota."""
    for index, group in enumerate((body.get("spec") or {}).get("resourceGroups") or ()):
        for place, flavor in enumerate(group["flavors"]):
            whole = offered.get(flavor["name"])
            if whole is None:
                continue
            for number, item in enumerate(flavor["resources"]):
                key = (flavor["name"], item["name"])
                if (
                    item["name"] == KUEUE_PODS
                ):  # a limit on admitted pods; how many fit on the nodes is not stated
                    continue
                promised = Quantity(books.promised.get(key, 0))
                there = whole.get(item["name"], ZERO)
                if promised > there and books.last[key] == (body["kind"], body["metadata"]["name"]):
                    yield Problem(
                        (
                            *("spec", "resourceGroups", index, "flavors", place),
                            *("resources", number, "nominalQuota"),
                        ),
                        f"quotas of {item['name']} in flavor '{flavor['name']}' add up to {format_amount(item['name'], promised)},"
                        f" but its nodes have {format_amount(item['name'], there)}",
                        rule=QUOTA_OVER_CAPACITY,
                    )
