"""Checks of ClusterQueues, flavors, cohorts and LocalQueues that Kueue refuses or that never admit a run.

The generator makes none of these mistakes, but a patch of the cluster's overlay can.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from gangplan.kueue.hierarchy import find_cohort_cycle
from gangplan.objects import Body
from gangplan.rules.objects import QUEUE_INVALID
from gangplan.validate.apiserver.forms import FoundProblems, parse_accepted_amount
from gangplan.validate.kueue.members import parents_of, read_cohort_members
from gangplan.validate.problems import Problem


def check_queue_alone(body: Body) -> FoundProblems:
    """Check a ClusterQueue, Cohort or ResourceFlavor without the other objects of the cluster."""
    if body["kind"] in ("ClusterQueue", "Cohort"):
        yield from _check_cluster_queue_resource_groups(body)
    if body["kind"] == "ClusterQueue":
        yield from _check_cluster_queue_namespace_selector(body)
    if body["kind"] == "ResourceFlavor":
        if not body.get("spec"):
            # Applied over a spec with fields it becomes null, which the API server refuses (seen with
            # v0.19.2).
            yield _report_invalid_queue(("spec",), "Kueue refuses an empty spec; name a label of the nodes")
        yield from _check_flavor_taints(body)


class QueueIndex:
    """The objects of a cluster by kind and name, and the ClusterQueues of each namespace."""

    def __init__(self, bodies: Sequence[Body], external: Collection[str] = ()) -> None:
        """Read the objects once, as a cluster of five hundred teams has thousands.

        `external` are admission checks that are created outside gangplan.
        """
        self.external = external
        self.kinds: dict[str, dict[str, Body]] = {}
        self.queues_of: dict[str, set[str]] = {}
        for body in bodies:
            self.kinds.setdefault(body["kind"], {})[body["metadata"]["name"]] = body
            if body["kind"] == "LocalQueue":
                namespace = body["metadata"].get("namespace", "")
                self.queues_of.setdefault(namespace, set()).add(body["spec"].get("clusterQueue", ""))
        self.members = read_cohort_members(bodies)
        self.parents = parents_of(self.members)

    def names(self, kind: str) -> dict[str, Body]:
        """Return the cluster-scoped objects of a kind by name."""
        return self.kinds.get(kind, {})


def check_queue_references(body: Body, others: QueueIndex) -> list[Problem]:
    """Check an object of the platform or a team against all objects of the cluster (`others`)."""
    kind = body["kind"]
    if kind == "ClusterQueue":
        return [
            *_check_cluster_queue_references(body, others),
            *_check_cluster_queue_label_clashes(body, others),
        ]
    if kind == "Cohort":
        return [*_check_cohort_parents(body, others), *_check_flavor_references(body, others)]
    if kind == "ResourceFlavor":
        return [*_check_flavor_topology(body, others)]
    if kind == "LocalQueue":
        return [*_check_local_queue_target(body, others)]
    if kind == "AdmissionCheck":
        return [*_check_admission_check_parameters(body, others)]
    return []


def _check_cluster_queue_resource_groups(body: Body) -> FoundProblems:
    """Check resource groups by the webhook's rules (clusterqueue_webhook.go, Kueue v0.19.2)."""
    resources: set[str] = set()
    flavors: set[str] = set()
    for index, group in enumerate((body.get("spec") or {}).get("resourceGroups") or ()):
        at = ("spec", "resourceGroups", index)
        for place, resource in enumerate(group["coveredResources"]):
            if resource in resources:
                yield _report_invalid_queue(
                    (*at, "coveredResources", place), f"resource '{resource}' is covered by two groups"
                )
            resources.add(resource)
        for place, flavor in enumerate(group["flavors"]):
            here = (*at, "flavors", place)
            if flavor["name"] in flavors:
                yield _report_invalid_queue(
                    (*here, "name"), f"flavor '{flavor['name']}' appears twice in one queue"
                )
            flavors.add(flavor["name"])
            listed = [item["name"] for item in flavor["resources"]]
            if listed != group["coveredResources"]:
                yield _report_invalid_queue(
                    (*here, "resources"),
                    f"flavor '{flavor['name']}' lists {', '.join(listed)}; Kueue wants exactly the covered"
                    f" resources in their order: {', '.join(group['coveredResources'])}",
                )
            for number, item in enumerate(flavor["resources"]):
                yield from _check_lending_limit((*here, "resources", number), item, body["kind"])


def _check_lending_limit(at: tuple[str | int, ...], item: Body, kind: str) -> FoundProblems:
    lending = item.get("lendingLimit")
    if (
        kind == "ClusterQueue"
        and lending is not None
        and parse_accepted_amount(lending) > parse_accepted_amount(item["nominalQuota"])
    ):
        yield _report_invalid_queue(
            (*at, "lendingLimit"),
            f"{lending} of {item['name']} are lent, but the nominal quota is {item['nominalQuota']}",
        )


def _check_cluster_queue_references(body: Body, others: QueueIndex) -> FoundProblems:
    spec = body["spec"]
    yield from _check_flavor_references(body, others)
    cohort = spec.get("cohortName")
    if cohort and cohort not in others.names("Cohort"):
        yield _report_invalid_queue(
            ("spec", "cohortName"),
            f"there is no cohort '{cohort}': the queue would be alone in it and could never borrow",
        )
    own = {flavor["name"] for group in spec.get("resourceGroups") or () for flavor in group["flavors"]}
    checks = (spec.get("admissionChecksStrategy") or {}).get("admissionChecks") or ()
    for index, check in enumerate(checks):
        at = ("spec", "admissionChecksStrategy", "admissionChecks", index)
        if check["name"] not in others.names("AdmissionCheck") and check["name"] not in others.external:
            yield _report_invalid_queue(
                (*at, "name"), f"there is no admission check '{check['name']}': the queue stays inactive"
            )
        for place, flavor in enumerate(check.get("onFlavors") or ()):
            if flavor not in own:
                yield _report_invalid_queue(
                    (*at, "onFlavors", place), f"flavor '{flavor}' is not one of this queue"
                )


def _check_flavor_references(body: Body, others: QueueIndex) -> FoundProblems:
    known = others.names("ResourceFlavor")
    for index, group in enumerate((body.get("spec") or {}).get("resourceGroups") or ()):
        for place, flavor in enumerate(group["flavors"]):
            if flavor["name"] not in known:
                yield _report_invalid_queue(
                    ("spec", "resourceGroups", index, "flavors", place, "name"),
                    f"there is no flavor '{flavor['name']}': one missing flavor makes the whole queue inactive",
                )


def _check_cluster_queue_namespace_selector(body: Body) -> FoundProblems:
    if body["spec"].get("namespaceSelector") is None:
        yield _report_invalid_queue(
            ("spec", "namespaceSelector"),
            "without namespaceSelector the queue takes runs from no namespace at all",
        )


def _check_cluster_queue_label_clashes(body: Body, others: QueueIndex) -> FoundProblems:
    """Check for one label key with two values in flavors of two groups: pods get either, at random."""
    known = others.names("ResourceFlavor")
    seen: dict[tuple[str, int], str] = {}
    for index, group in enumerate(body["spec"].get("resourceGroups") or ()):
        for place, flavor in enumerate(group["flavors"]):
            spec = (known.get(flavor["name"]) or {}).get("spec") or {}
            for key, value in (spec.get("nodeLabels") or {}).items():
                clash = next(
                    (
                        other
                        for (name, at), other in seen.items()
                        if name == key and at != index and other != value
                    ),
                    None,
                )
                if clash is not None:
                    yield _report_invalid_queue(
                        ("spec", "resourceGroups", index, "flavors", place, "name"),
                        f"flavor '{flavor['name']}' has label {key}={value}, a flavor of another group {key}={clash}:"
                        " Kueue would send pods to either at random",
                    )
                seen.setdefault((key, index), value)


def _check_cohort_parents(body: Body, others: QueueIndex) -> FoundProblems:
    name, parent = body["metadata"]["name"], (body.get("spec") or {}).get("parentName")
    if parent and parent not in others.names("Cohort"):
        yield _report_invalid_queue(("spec", "parentName"), f"there is no cohort '{parent}'")
    way = find_cohort_cycle(others.parents, name)
    if way and name == min(way):
        yield _report_invalid_queue(
            ("spec", "parentName"),
            f"the parents of cohorts form a cycle ({' -> '.join(way)}): all their queues are inactive",
        )


def _check_flavor_taints(body: Body) -> FoundProblems:
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate((body.get("spec") or {}).get("nodeTaints") or ()):
        key = (taint["key"], taint["effect"])
        if key in seen:
            yield _report_invalid_queue(
                ("spec", "nodeTaints", index), f"taint {key[0]} with effect {key[1]} is listed twice"
            )
        seen.add(key)


def _check_flavor_topology(body: Body, others: QueueIndex) -> FoundProblems:
    topology = (body.get("spec") or {}).get("topologyName")
    if topology and topology not in others.names("Topology"):
        yield _report_invalid_queue(
            ("spec", "topologyName"),
            f"there is no topology '{topology}': queues with this flavor are inactive",
        )


def _check_local_queue_target(body: Body, others: QueueIndex) -> FoundProblems:
    target, namespace = body["spec"]["clusterQueue"], body["metadata"].get("namespace", "")
    queue = others.names("ClusterQueue").get(target)
    if queue is None:
        yield _report_invalid_queue(
            ("spec", "clusterQueue"), f"there is no ClusterQueue '{target}': nothing is ever admitted"
        )
        return
    wanted = ((queue["spec"].get("namespaceSelector") or {}).get("matchLabels")) or {}
    home = others.names("Namespace").get(namespace)
    labels = {"kubernetes.io/metadata.name": namespace}
    labels |= ((home or {}).get("metadata") or {}).get("labels") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        yield _report_invalid_queue(
            ("spec", "clusterQueue"),
            f"ClusterQueue '{target}' does not take runs from namespace '{namespace}'",
        )


def _check_admission_check_parameters(body: Body, others: QueueIndex) -> FoundProblems:
    parameters = body["spec"].get("parameters")
    if parameters and parameters["name"] not in others.names(parameters["kind"]):
        yield _report_invalid_queue(
            ("spec", "parameters", "name"), f"there is no {parameters['kind']} '{parameters['name']}'"
        )


def _report_invalid_queue(path: tuple[str | int, ...], message: str) -> Problem:
    return Problem(path, message, "", QUEUE_INVALID)
