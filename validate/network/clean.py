"""A key for all that the network proof reads of a run, without names: equal keys mean equal results.

Most runs of a team have the same policies, ports and needs, under names of their own. Only keys of runs
without problems are kept: a run with problems is proved by itself, so that its messages have its own names.

Why equal keys mean equal results. The proof reads labels only through selectors, so a label that no policy
mentions does not matter, and a value that none mentions only counts as "another value". A value counts as
mentioned if the policies' text contains it, which covers more than the selectors do. Pods of a role differ
only in their index; if no policy looks at it, only whether there are several matters. The run's name is
compared for equality and never parsed, so it is replaced by a text that no object can contain. If the pods of
other namespaces had to be examined one by one, nothing is kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gangplan.model.backend import Backend
from gangplan.model.job import HASH_LENGTH
from gangplan.objects import Body
from gangplan.spec.fabrics import NETWORKS_ANNOTATION
from gangplan.validate.expand import EXPANDERS
from gangplan.validate.memo import SeenKeys
from gangplan.validate.network.beyond import INTERFACES_ANNOTATION
from gangplan.validate.network.proxied import PROXY_VARIABLES
from gangplan.validate.network.relation import NAMESPACE_NAME_LABEL
from gangplan.validate.world import BuiltRun, World, index_namespace_labels

RUN = "\N{NULL}"  # no object can contain it; JSON escapes it
OTHER = None  # any value that no policy mentions


class CleanRuns:
    """The runs of a world in which nothing was found; for `World.once`."""

    def __init__(self, world: World) -> None:
        self.known = SeenKeys()
        self._homes = world.once(index_namespace_labels)
        self._policies: dict[str, list[Body]] = {}
        for body in world.of_kind("NetworkPolicy"):
            self._policies.setdefault(body["metadata"].get("namespace", ""), []).append(body["spec"])
        self._texts: dict[str, str] = {}

    def key(self, run: BuiltRun) -> str | None:
        """Return all that the proof reads of a run and its namespace; None if there is nothing to prove."""
        at = {body["kind"]: body for body in run.bodies}
        job = run.unit.job
        train_job, runtime = at.get(job.backend.kind), at.get(job.backend.holder)
        if train_job is None or runtime is None:
            return None
        name, namespace = train_job["metadata"]["name"], train_job["metadata"].get("namespace", "")
        dns = job.platform.dns
        own = [
            (home if (home := body["metadata"].get("namespace", "")) != namespace else OTHER, body["spec"])
            for body in run.bodies
            if body["kind"] == "NetworkPolicy"
        ]
        policies = "".join(
            (
                _text(own),
                self._text(namespace),
                self._text(dns.namespace),
                _text(dns.labels),
                NAMESPACE_NAME_LABEL,
            )
        )
        home = self._homes.get(namespace)
        facts = (
            namespace == dns.namespace,
            None
            if home is None
            else _select_labels_network_policies_mention({**home, NAMESPACE_NAME_LABEL: namespace}, policies),
            (dns.namespace, dns.ports, dns.addresses),
            (
                job.posture,
                job.uses_mpi,
                job.image.ssh.port,
                list(job.fabric.resources),
                job.fabric.access.node_addresses,
            ),
            [(one.cidr, one.excluding, one.ports) for one in job.egress],
            *_collect_shared_label_sources(runtime),
            [*_collect_role_network_facts(job.backend, train_job, runtime, policies)],
        )
        text = policies + _text(facts)
        # A patch may rename a run, even to a text that this proof uses itself: then the name stays in the
        # key.
        is_named = name.startswith(f"{job.name}-") and len(name) == len(job.name) + 1 + HASH_LENGTH
        return text.replace(name, RUN) if is_named else text

    def _text(self, namespace: str) -> str:
        """Return the policies that the cluster has in a namespace."""
        known = self._texts.get(namespace)
        if known is None:
            known = self._texts[namespace] = _text(self._policies.get(namespace, ()))
        return known


_text = json.JSONEncoder(check_circular=False).encode


def _select_labels_network_policies_mention(
    labels: Mapping[str, str], policies: str
) -> list[tuple[str, str | None]]:
    """Return the labels that policies mention, with their values if policies mention those."""
    return [
        (key, value if f'"{value}"' in policies else OTHER)
        for key, value in labels.items()
        if f'"{key}"' in policies
    ]


def _collect_shared_label_sources(holder: Body) -> tuple[Any, ...]:
    """Return what adds labels to all pods of a run."""
    spec = holder["spec"]
    jobs = (spec.get("template") or {}).get("spec") or {}
    return (
        holder["kind"],
        spec.get("podGroupPolicy"),
        bool(jobs.get("coordinator")),
        bool(spec.get("runLauncherAsWorker")),
    )


def _collect_role_network_facts(made: Backend, job: Body, holder: Body, policies: str) -> Iterator[Any]:
    """Yield what matters about the pods of each role."""
    is_indexed = made.index_label in policies
    for one in EXPANDERS[made.kind](job, holder, 0):
        yield (
            one.name,
            one.replicas,
            one.entry.get("groupName"),
            one.each if is_indexed else min(one.count, 2),
            *_collect_template_network_facts(one.template, one.labels, policies),
        )


def _collect_template_network_facts(
    template: Body, labels: Mapping[str, str], policies: str
) -> tuple[Any, ...]:
    """Return what the proof reads of a template."""
    metadata, spec = template.get("metadata") or {}, template["spec"]
    return (
        _select_labels_network_policies_mention(labels, policies),
        [
            (metadata.get("annotations") or {}).get(one)
            for one in (NETWORKS_ANNOTATION, INTERFACES_ANNOTATION)
        ],
        spec.get("hostNetwork"),
        [_collect_container_network_facts(one) for one in spec["containers"]],
        [one.get("ports") for one in _list_sidecar_containers(spec)],
    )


def _list_sidecar_containers(spec: Body) -> Sequence[Body]:
    return [one for one in spec.get("initContainers") or () if one.get("restartPolicy") == "Always"]


def _collect_container_network_facts(one: Body) -> Any:
    """Return ports, proxies and devices of a container."""
    resources = one.get("resources") or {}
    return (
        one.get("ports"),
        ((one.get("readinessProbe") or {}).get("tcpSocket") or {}).get("port"),
        [
            (variable["name"], variable.get("value"))
            for variable in one.get("env") or ()
            if variable["name"].upper() in PROXY_VARIABLES
        ],
        [*(resources.get("limits") or ()), *(resources.get("requests") or ())],
    )
