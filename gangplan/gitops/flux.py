"""Flux: a source and four Kustomizations per cluster.

The source is a GitRepository, or an OCIRepository for an `oci://` address. platform and tenants are
guardrails: pruned and healed. The files of runs are read twice, because Flux makes a dry run of all objects
of a Kustomization before it applies one (fluxcd/pkg ssa v0.76, ApplyAll), and Trainer refuses a TrainJob
whose runtime does not exist: `runtimes` has what runs need, and `runs` what starts. The latter are created
once: never applied again over what Kueue and Trainer write into them, and protected from being pruned by
their own annotation until they are over (record.py). Options and reasons: docs/gitops.md.
"""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.gitops.cel import build_flux_health_expressions
from gangplan.gitops.health import CLUSTERQUEUE_HEALTH, HEALTH_KINDS, LOCALQUEUE_HEALTH
from gangplan.gitops.record import STATE_ANNOTATION, STOPPED_STATE
from gangplan.gitops.source import RepositorySource
from gangplan.model import backend, syncing
from gangplan.model.kinds import SYNC_WAVES, find_kinds_of_parts
from gangplan.objects import Body
from gangplan.records import dataclass
from gangplan.source import load_objects
from gangplan.spec.root import RENDERED
from gangplan.template import render_yaml

# Flux applies at each interval; with IfNotPresent it only creates (kustomize-controller 1.9, "Controlling the
# apply behavior of resources"). Archived runs carry Ignore; commonMetadata would replace that.
_CREATE_ONCE = f"""\
- op: add
  path: {syncing.build_annotation_pointer(syncing.FLUX_SERVER_SIDE)}
  value: IfNotPresent
"""
_UNLESS = f"{syncing.FLUX_SERVER_SIDE}!=Ignore,{STATE_ANNOTATION}!={STOPPED_STATE}"
# Under Kueue only a deletion ends a run for good. Flux deletes an object that has `force` and creates it
# again when the server calls a field immutable (fluxcd/pkg ssa, Apply), so records get another value for one.
# It is patched here and not rendered, because Argo CD could not compare such an object (diff.ServerSideDiff).
_REPLACE = f"""\
- op: add
  path: {syncing.build_annotation_pointer(syncing.FLUX_FORCE)}
  value: enabled
- op: add
  path: /spec/managedBy
  value: {{}}
"""
# An MPIJob has no immutable field. But Kueue's webhook treats the queue of a job that is not suspended as
# immutable, and a record names another one (kueue v0.15.2 to v0.19.2, validateUpdateForQueueName). The
# webhook suspends the new MPIJob.
_REPLACE_MPIJOB = f"""\
- op: add
  path: {syncing.build_annotation_pointer(syncing.FLUX_FORCE)}
  value: enabled
- op: remove
  path: /spec/runPolicy/suspend
"""
_OVER = f"{STATE_ANNOTATION}={STOPPED_STATE}"
# Objects that are neither part of a run nor launch scripts; with a target, kind and name of the patch mean
# nothing.
_OTHERS = f"!gangplan.dev/run,!{syncing.SCRIPTS}"
RUNTIMES, RUNS = "runtimes", "runs"
_DROP = """\
$patch: delete
apiVersion: v1
kind: All
metadata:
  name: all
"""
MULTIKUEUE = "kueue.x-k8s.io/multikueue"
# The patch with which the record of a run replaces it.
_REPLACING = {backend.TRAINJOB.name: _REPLACE, backend.MPIJOB.name: _REPLACE_MPIJOB}
# What each part has a health check for. A run's check is evaluated only if somebody names it in
# `healthChecks`.
_QUEUES = {"platform": CLUSTERQUEUE_HEALTH, "tenants": LOCALQUEUE_HEALTH}


@dataclass(frozen=True, slots=True)
class FluxAccess:
    """What Flux needs to read a source, and what must be there first.

    `secrets` are fields of the source (source-controller v1.9: secretRef, certSecretRef, proxySecretRef) with
    the names of Secrets; `provider` is whose workload identity reads it, and `after` the Kustomization on
    which the first one depends; empty if there is none.
    """

    secrets: tuple[tuple[str, str], ...] = ()
    provider: str = ""
    after: str = ""


def build_flux_objects(
    cluster: str,
    source: RepositorySource,
    parts: Sequence[str],
    has_kueue: bool = True,
    hands_on: bool = False,
    controllers: Sequence[str] = (backend.TRAINJOB.stated,),
    access: FluxAccess = FluxAccess(),  # noqa: B008  it is frozen
) -> list[Body]:
    """Build the source and the Kustomizations of one cluster.

    `parts` are those of platform, tenants and runs that are rendered. Each waits for the one before it; a
    Kustomization without its folder would fail. Runs, and before them their runtimes, are read from the
    folder of the cluster, which exists even when no run is left, and everything else that was read there is
    dropped.

    `hands_on`: runs go to worker clusters. `controllers` start them, as `versions` of a cluster's file calls
    them.
    """
    made = {one.kind: one.name for one in backend.BACKENDS.values() if one.stated in controllers}
    # A value that runs of the cluster do not have.
    other = backend.TRAINJOB.manager if hands_on else MULTIKUEUE
    values = {
        "cluster": cluster,
        "kind": "OCIRepository" if source.is_oci else "GitRepository",
        "ref": _select_source_ref_field(source),
        "source": source,
        "access": access,
        "patch": _CREATE_ONCE,
        "unless": _UNLESS,
        "runs": [(kind, _REPLACING[name].format(other) if has_kueue else "") for kind, name in made.items()],
        "over": _OVER,
        "others": _OTHERS,
        "drop": _DROP,
        "ignore": _write_flux_source_ignore_list(source),
    }
    bodies = load_objects(render_yaml("gitops/flux-source.yaml.j2", values))
    stages = kustomizations_of(parts)
    for before, part in zip(("", *stages), stages, strict=False):
        kinds = [_QUEUES[part]] if part in _QUEUES and has_kueue else []
        if part == RUNS:
            kinds = [one for one in HEALTH_KINDS if one.name in made]
        more = {
            "part": part,
            "before": before,
            "checks": build_flux_health_expressions(kinds) if kinds else [],
            "others_kinds": _build_run_kind_pattern(starts=part == RUNTIMES),
        }
        bodies += load_objects(render_yaml("gitops/flux-kustomization.yaml.j2", {**values, **more}))
    return bodies


def kustomizations_of(parts: Sequence[str]) -> list[str]:
    """Return the names of the Kustomizations of some parts, in order."""
    return [one for part in parts for one in ((RUNTIMES, RUNS) if part == RUNS else (part,))]


def _build_run_kind_pattern(starts: bool) -> str:
    """Return a regular expression for the kinds in a run's files that start something, or for all others."""
    found = {one.name for one in find_kinds_of_parts("runs") if (SYNC_WAVES["runs", one.name] > 0) == starts}
    return "|".join(sorted(found))


def _select_source_ref_field(source: RepositorySource) -> str:
    """Return the field of a reference that the revision is written into."""
    if not source.is_oci:
        return "branch"
    return "digest" if source.revision.startswith("sha256:") else "tag"


def _write_flux_source_ignore_list(source: RepositorySource) -> str:
    """Write an ignore list like .gitignore, so that the source's artifact holds only what is applied."""
    lines, above = [], "/"
    for folder in source.path(RENDERED).split("/"):
        lines += [f"{above}*", f"!{above}{folder}/"]
        above += f"{folder}/"
    return "".join(f"{line}\n" for line in lines)
