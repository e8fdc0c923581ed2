"""Causes of the rules of a run's NetworkPolicies (generators/network.py)."""

from __future__ import annotations

from typing import Any

from gangplan.findings import FieldPath
from gangplan.generators.network import generate_network_policy_values
from gangplan.resolve.cloud import METADATA_SERVER
from gangplan.trace import fabric
from gangplan.trace.cause import Cause, mark_indirect
from gangplan.trace.context import RunContext
from gangplan.trace.files import build_own_cause

# The network policy of the pods that create runs (generators/schedules.py).
SCHEDULER = "gangplan-scheduler"


def trace_policy_rule_causes(run: RunContext, stars: FieldPath) -> list[Cause]:
    """Return the causes of a part of a rule: for the run itself, or an endpoint."""
    direction, number, *rest = stars
    around = mark_indirect([*run.chosen("posture"), *run.framework()])
    names = [policy.name for policy in generate_network_policy_values(run.unit)]
    is_main = run.body["metadata"]["name"] == names[0]
    last = len(run.body["spec"].get(direction) or ()) - 1
    if (
        "ipBlock" in rest
        and (not is_main or direction == "ingress" or int(number) == last)
        and _has_host_network_workers(run)
    ):
        return _trace_node_range_causes(run, is_main, rest)
    is_of_nodes = _has_host_network_workers(run) and int(number) == last
    if is_main and direction == "egress" and int(number) >= 1 and not is_of_nodes:
        return _trace_endpoint_causes(run, int(number) - 1, rest)
    if rest and rest[-1] == "jobset.sigs.k8s.io/jobset-name":
        return [*run.run_name(), *around]
    if rest and rest[-1] in ("port", "endPort") and run.job.uses_mpi and _is_by_ssh(run, is_main, rest):
        return [*run.of_image("ssh", "port"), *around]
    return [build_own_cause("pods of one run may talk to each other, as far as the posture allows"), *around]


def _has_host_network_workers(run: RunContext) -> bool:
    """Return whether workers use their node's network and the launcher does not."""
    return any(one.cidr for one in (generate_network_policy_values(run.unit)[0].ingress or ())[-1].peers)


def _trace_node_range_causes(run: RunContext, is_main: bool, rest: list[str | int]) -> list[Cause]:
    """Return the causes of an address range of the nodes, whose network the workers use."""
    number = int(rest[rest.index("ipBlock") - 1]) - (0 if is_main else 1)
    return fabric.trace_fabric_causes(run, "nodeAddresses", number)


def _is_by_ssh(run: RunContext, is_main: bool, rest: list[str | int]) -> bool:
    """Return whether a port of a rule inside the run is the SSH port or next to it."""
    return not is_main or (rest[-2], rest[-1]) in ((0, "endPort"), (1, "port"))


def trace_dns_rule_causes(context: Any, rest: list[str | int], is_address: bool = False) -> list[Cause]:
    """Return the causes of a part of a rule that opens DNS: the stated one, Kubernetes' or OpenShift's.

    `is_address`: the rule is for addresses of resolvers that are not pods.
    """
    if getattr(context, "body", None) and context.body["metadata"]["name"] == SCHEDULER:
        from gangplan.trace.schedule import trace_api_address_causes  # few clusters start runs by a schedule

        return trace_api_address_causes(context, ())
    stated = context.cluster("dns")
    if is_address:
        listed = context.value("cluster", "dns", "addresses")
        which = [int(rest[rest.index("ipBlock") - 1])] if "ipBlock" in rest else range(len(listed))
        found = [context.cluster("dns", "addresses", at) for at in which]
        return (
            found if "cidr" in rest else [build_own_cause("resolvers ask on port 53"), *mark_indirect(found)]
        )
    if not stated.is_written:
        kind = "OpenShift" if context.files.has("cluster", "versions", "openshift") else "Kubernetes"
        openshift = context.cluster("versions", "openshift").aside()
        return [build_own_cause(f"where {kind} runs its DNS pods"), stated.aside(), openshift]
    if "namespaceSelector" in rest:
        return [context.cluster("dns", "namespace")]
    if "podSelector" in rest:
        return [context.cluster("dns", "labels", str(rest[-1])), stated.aside()]
    if rest[-1] == "port":
        return [context.cluster("dns", "ports", int(rest[-2]) // 2), stated.aside()]
    return [
        build_own_cause("DNS is asked by UDP, and by TCP for long answers"),
        context.cluster("dns", "ports").aside(),
    ]


def _trace_endpoint_causes(run: RunContext, number: int, rest: list[str | int]) -> list[Cause]:
    """Return the causes of a part of the rule that opens a declared endpoint, including what asked for it."""
    name = run.job.egress[number].name
    if name == METADATA_SERVER:
        return [
            build_own_cause("GKE's metadata server gives pods their identity"),
            *mark_indirect(run.identity("serviceAccount")),
        ]
    first = next(at for at, one in enumerate(run.job.egress) if one.name == name)
    field: FieldPath = ("egress", name, number - first)
    asked = mark_indirect(_trace_egress_request_causes(run, name))
    if number - first >= len(run.value("cluster", "egress", name) or ()):
        return [*_trace_proxy_causes(run, rest), *asked]
    if rest[-1:] == ["cidr"]:
        return [run.cluster(*field, "cidr"), *asked]
    if "except" in rest:
        return [run.cluster(*field, "excluding", *rest[rest.index("except") + 1 :]), *asked]
    if rest[-1:] == ["port"]:
        return [run.cluster(*field, "ports", rest[-2]), *asked]
    return [build_own_cause(f"endpoint {name} is reached by TCP"), run.cluster(*field).aside(), *asked]


def _trace_proxy_causes(run: RunContext, rest: list[str | int]) -> list[Cause]:
    """Return the causes of a part of the rule that opens the proxy: its addresses, and its URLs' ports."""
    urls = [run.cluster("proxy", "http"), run.cluster("proxy", "https")]
    listed = run.value("cluster", "proxy", "addresses") or ()
    if rest[-1:] == ["cidr"] and listed:
        return [run.cluster("proxy", "addresses", at) for at in range(len(listed))]
    return [*urls, *mark_indirect([run.cluster("proxy", "addresses")])]


def _trace_fetch_step_causes(run: RunContext, name: str) -> list[Cause]:
    """Return the fields of the steps that fetch through an endpoint."""
    found = []
    for step in run.job.steps:
        asked = str(run.value("spec", *step.place, "fetch") or "")
        connection = run.value("team", "connections", asked.partition("/")[0])
        if asked.startswith("hf://") and name in ("huggingface", "internet"):
            found.append(run.spec(*step.place, "fetch"))
        elif (
            isinstance(connection, dict)
            and (connection.get("egress") or connection.get("type", "s3")) == name
        ):
            found.append(run.spec(*step.place, "fetch"))
            found.append(run.team("connections", asked.partition("/")[0], "egress"))
    return found


def _trace_egress_request_causes(run: RunContext, name: str) -> list[Cause]:
    """Return what asks for an endpoint: the spec, a default, or a connection."""
    listed = run.value("spec", "network", "egress") or []
    found = [run.spec("network", "egress", listed.index(name))] if name in listed else []
    if not listed:
        found += run.chosen("egress")
    wanted = [*(run.value("spec", "data") or {}), run.value("spec", "checkpoint", "to")]
    for one in wanted:
        connection = run.value("team", "connections", one) if one else None
        if (
            isinstance(connection, dict)
            and (connection.get("egress") or connection.get("type", "s3")) == name
        ):
            is_data = one in (run.value("spec", "data") or {})
            found.append(run.spec("data", one, key=True) if is_data else run.spec("checkpoint", "to"))
            found.append(run.team("connections", one, "egress"))
    found += _trace_fetch_step_causes(run, name)
    needed = run.value("cluster", "workloadIdentity", "egress") or []
    if name in needed:
        found.append(run.cluster("workloadIdentity", "egress", needed.index(name)))
        found += mark_indirect(run.identity())
    # An identity adds endpoints, which shifts the later entries of the list.
    return [*found, run.spec("network", "egress"), run.spec("serviceAccount").aside()]
