"""Causes of names, labels and annotations of a run's objects and pods."""

from __future__ import annotations

from gangplan.findings import FieldPath
from gangplan.model import syncing
from gangplan.model.backend import ANCESTOR_LABEL, BACKENDS, RUNTIME_FRAMEWORK_LABEL
from gangplan.model.pods import GCSFUSE_ANNOTATION
from gangplan.trace import fabric, rails
from gangplan.trace.cause import Cause, mark_indirect
from gangplan.trace.context import TraceContext, trace_template_causes
from gangplan.trace.files import build_own_cause, find_value_at
from gangplan.trace.table import CauseRule, build_origin_rule
from gangplan.waivers import Subject, Waivers, find_covering_waiver

PREFIX = "gangplan.dev/"


def _build_cause_rule_table(*rows: tuple[str, str]) -> dict[str, CauseRule]:
    return {key: build_origin_rule(text) for key, text in rows}


_OF_RUN = "job.run_name"
_LABELS = _build_cause_rule_table(
    (f"{PREFIX}job", "job.name"),
    (f"{PREFIX}schedule", "job.name"),
    (f"{PREFIX}run", _OF_RUN),
    (f"{PREFIX}team", "job.team"),
    (f"{PREFIX}cost-centre", "team.costCentre"),
    (f"{PREFIX}role", "= the role of the pod: launcher or worker"),
    (f"{PREFIX}residency", "spec.residency"),
    (f"{PREFIX}sweep", "spec.name: the sweep that it is a trial of"),
    ("kueue.x-k8s.io/queue-name", "job.queue | ~spec.state | ~spec.retired"),
    ("kueue.x-k8s.io/priority-class", "job.priority | ~cluster.gang"),
    (RUNTIME_FRAMEWORK_LABEL, "job.framework"),
    ("training.openshift.io/mpijob", _OF_RUN),
    *((made.run_label, _OF_RUN) for made in BACKENDS.values()),
    (ANCESTOR_LABEL, "= gangplan writes it for every run (templates/runtime.yaml.j2) | ~job.framework"),
    ("app.kubernetes.io/managed-by", "= gangplan marks all that it renders"),
    (
        "sidecar.istio.io/inject",
        "= a sidecar that outlives the program would keep the run from ever completing",
    ),
    (
        "training.openshift.io/mpijob-role",
        "= the role of the pod, for the platform's log and cost tools",
    ),
    *(
        (made.role_label, "= gangplan distinguishes workers from the launcher by it")
        for made in BACKENDS.values()
    ),
)


def trace_label_causes(context: TraceContext, stars: FieldPath) -> list[Cause]:
    """Return the causes of one label of an object, a JobSet, a Job or a pod."""
    key = str(stars[-1])
    if context.files.has("spec", "labels", key):
        return [context.spec("labels", key)]
    if key in _LABELS:
        return list(_LABELS[key](context, stars))
    if key.startswith("azure.workload.identity/"):
        return context.identity("clientId")
    if key.startswith(f"{PREFIX}waived-"):
        waivers = context.unit.sources.waivers if context.unit.sources else ()
        return trace_waiver_causes(waivers, key.removeprefix(f"{PREFIX}waived-"), Subject.of(context.job))
    if key.startswith(PREFIX):
        return _trace_compliance_causes(context, key.removeprefix(PREFIX))
    return [context.spec("labels", key, because="labels in the spec go to every object of the run")]


def trace_waiver_causes(waivers: Waivers, policy: str, subject: Subject) -> list[Cause]:
    """Return the causes of the mark that exempts an object from a policy: the waiver and its scope."""
    rule = next((one for waiver in waivers for one in waiver.policies if one == policy), None)
    found = find_covering_waiver(waivers, rule, subject) if rule is not None else None
    if found is None:
        return [build_own_cause(f"a waiver excuses it from {policy}")]
    document, words = found.document, f"the waiver {found.name} excuses it from {policy}"
    causes = [Cause(found.where, words, document.file, ("rule",))]
    names = [("scope", name) for name in ("cluster", "team", "job")]
    for field in [*names, *(("limit", name) for name in document.value.get("limit") or ())]:
        is_written, says = (
            find_value_at(document.value, field) is not None,
            f"{field[-1]} of the waiver {found.name}",
        )
        causes.append(Cause(document.where(field), says, document.file, field, is_written, is_direct=False))
    return [*causes, Cause(found.where, "its limit", document.file, ("limit",), False, False)]


def _trace_compliance_causes(context: TraceContext, key: str) -> list[Cause]:
    """Return the causes of a compliance regime (`gangplan.dev/hipaa: "true"`).

    It is listed in the spec, the team's file or the cluster's file.
    """
    for role in ("spec", "team"):
        listed = context.value(role, "compliance")
        if isinstance(listed, list) and key in listed:
            return [context.files.cause(role, "compliance", listed.index(key))]
    pinned = context.value("cluster", "teams", context.job.team, "compliance")
    if isinstance(pinned, list) and key in pinned:
        return [context.cluster("teams", context.job.team, "compliance", pinned.index(key))]
    return [context.spec("compliance", because="compliance in the spec or the team's file sets it")]


_ANNOTATIONS = _build_cause_rule_table(
    (f"{PREFIX}description", "spec.description"),
    (f"{PREFIX}source", "spec: the spec is {source}"),
    (
        f"{PREFIX}spec-hash",
        "spec: a hash of what the spec says, the fields that may change on a run aside",
    ),
    (f"{PREFIX}extended-timeout", "spec.extendedTimeout | ~job.timeout"),
    (f"{PREFIX}model", "spec.model.name | spec.model.version"),
    (
        f"{PREFIX}image-digest",
        "job.image | catalog.images.{image}.digest | ~catalog.images.{image}.clusters.{cluster}.digest",
    ),
    (f"{PREFIX}parameters", "spec.parameters: the values of this trial"),
    ("training.openshift.io/log-retention", "job.logRetention | ~cluster.retention.logs"),
    ("training.openshift.io/timeout", "job.timeout"),
    ("training.openshift.io/timeout-action", "= the deadline ends the run | ~job.timeout"),
    ("training.openshift.io/debug-mode", "spec.debug"),
)
_MAY_BE_OVER = build_origin_rule(
    "= what Argo CD or Flux may do with a run, and with the record of one that is over"
    " | ~spec.state | ~spec.retired"
)


def trace_annotation_causes(context: TraceContext, stars: FieldPath) -> list[Cause]:
    """Return the causes of one annotation of a run's object."""
    key = str(stars[-1])
    if key in _ANNOTATIONS:
        return list(_ANNOTATIONS[key](context, stars))
    if key == f"{PREFIX}datasets":
        return _trace_dataset_causes(context)
    if key == f"{PREFIX}data-regions":
        regions = [context.team("connections", name, "region") for name, _ in context.job.data_regions]
        return [*regions, *mark_indirect(_trace_dataset_causes(context))]
    if key in syncing.build_archived_annotations():
        return [context.spec("state")]
    if key == f"{PREFIX}state":
        return trace_record_causes(context, stars)
    return (
        _MAY_BE_OVER(context, stars)
        if syncing.is_engine_annotation(key)
        else trace_template_causes("runtime.yaml.j2")
    )


def trace_record_causes(context: TraceContext, stars: FieldPath) -> list[Cause]:
    """Return what turns a finished run into a record: the state of its spec, or the list of earlier runs."""
    return [context.spec("retired" if not context.job.is_stopped else "state")]


def _trace_dataset_causes(context: TraceContext) -> list[Cause]:
    """Return the causes of the data sets that a regime records: what the run reads, and its checkpoints."""
    names = context.value("spec", "data") or {}
    regimes = [context.spec("compliance"), context.team("compliance"), context.spec("residency")]
    # Only by their names: where they are mounted makes no difference.
    asked = mark_indirect([context.spec("data", name, key=True) for name in names])
    return [context.spec("data"), context.spec("checkpoint", "to"), *asked, *mark_indirect(regimes)]


def trace_pod_annotation_causes(context: TraceContext, stars: FieldPath) -> list[Cause]:
    """Return the causes of one annotation of a pod."""
    key = str(stars[-1])
    if key in dict(context.job.fabric.access.annotations):
        return fabric.trace_fabric_annotation_causes(context, key)
    if key == "openshift.io/required-scc":
        scc = fabric.trace_fabric_causes(context, "scc") if context.job.fabric.access.scc else []
        return [
            *scc,
            context.cluster("versions", "openshift").aside(),
            build_own_cause("OpenShift: images run as their own user"),
        ]
    if key == "k8s.v1.cni.cncf.io/networks":
        pool = context.job.worker_pool.name
        return [*rails.trace_rdma_causes(context, "network"), *context.pool(pool)]
    if key.startswith("kueue.x-k8s.io/podset-"):
        return _trace_topology_causes(context, key)
    if key == GCSFUSE_ANNOTATION[0]:
        names = [one.inline.connection for one in context.job.mounts if one.inline and one.inline.connection]
        asked = [context.spec("data"), context.spec("checkpoint", "to")]
        return [*(context.team("connections", name, "mount") for name in names), *mark_indirect(asked)]
    return [build_own_cause("moving a pod of a run to save a node would end the run")]


def _trace_topology_causes(context: TraceContext, key: str) -> list[Cause]:
    pool = context.job.worker_pool.name
    around = [
        context.cluster("nodePools", pool, "topology").aside(),
        *context.pool(pool),
        context.gang().aside(),
        *mark_indirect([context.spec("placement", "topology", kind) for kind in ("required", "preferred")]),
    ]
    for kind in ("required", "preferred"):
        level = context.value("spec", "placement", "topology", kind)
        if level and key.endswith(f"{kind}-topology"):
            levels = context.value("cluster", "topology") or []
            index = next((at for at, one in enumerate(levels) if one.get("name") == level), 0)
            asked = context.spec("placement", "topology", kind)
            return [asked, context.cluster("topology", index, "label"), *around]
    return [
        build_own_cause("Kueue admits pods to a pool with topology only if they ask for a place in it"),
        *around,
    ]
