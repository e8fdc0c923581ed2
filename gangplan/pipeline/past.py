"""What an earlier render may have written into rendered/, and the next one removes: stale, not unmanaged.

Such a file looks like a careful copy of one. So only what would do little harm is accepted, and `render
--check` refuses all of it: a file under a name that gangplan gives, from the file that it names as its
source, with gangplan's label on each object, of the kinds that belong there, in a namespace of its own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from gangplan.generators import PLATFORM_GENERATORS
from gangplan.generators.scripts import SCRIPTS_VOLUME, team_source_of
from gangplan.generators.tenants import DEBUGGER_ROLE, ROLE_OF_PERSONA
from gangplan.model.kinds import TreePart, find_kinds_of_parts
from gangplan.model.schedule import SCHEDULER_ACCOUNT
from gangplan.objects import Body, Ref, ref_of
from gangplan.spec.namespaces import RESERVED_NAMESPACES

# The parts of a tree, by the names of their files.
_PARTS: Mapping[str, TreePart] = {
    "runs": "runs",
    **dict.fromkeys(PLATFORM_GENERATORS, "platform"),
    "platform": "platform",  # of trees from before the platform was split into files
    "policies": "policies",
    "tenant": "tenants",
}
# The roles that a tenant's bindings may name.
BOUND_ROLES = frozenset(
    {
        *ROLE_OF_PERSONA.values(),
        DEBUGGER_ROLE,
        "mpijob-creator",
        SCHEDULER_ACCOUNT,
        "system:openshift:scc:nonroot-v2",
    }
)
# Kinds that grant rights apply at once, so in a rendered file they are never harmless.
_RIGHTS = ("ClusterRole", "RoleBinding", "ServiceAccount", "Namespace")
# What starts a run later has the runs before it, or its schedule, in its name, and changes with them alone.
_STARTERS = {"ConfigMap": "-template", "Job": "-after-[0-9a-f]{6}"}
_FILES = "|".join((*PLATFORM_GENERATORS, "platform", "policies"))
_PLACE = re.compile(
    rf"(?P<cluster>[^/]+)/(?:platform/(?P<platform>{_FILES})"
    r"|tenants/(?P<team>[^/]+)/(?P<tenant>tenant)"
    r"|runs/(?P<mounting>[^/]+)/launch\.(?P<scripts>[0-9a-f]{8})"
    r"|runs/(?P<owner>[^/]+)/(?P<run>[^/]+-[0-9a-f]{8}))\.yaml"
)


def is_past_rendered_file(path: str, source: str, bodies: Sequence[Body], taken: Collection[str]) -> bool:
    """Return whether a render may have written a file that is not rendered now; `taken` are namespaces of
    today."""
    place = _PLACE.fullmatch(path)
    if place is None or not _has_source_expected_for_rendered_path(place, source):
        return False
    refs = Counter(map(ref_of, bodies))
    own = {ref.name for ref in refs if ref.kind == "Namespace"} or {ref.namespace for ref in refs} - {""}
    is_own = all(ref.namespace in (*own, "") for ref in refs) and not (own & {*taken})
    if (
        not is_own
        or any(_is_past_object_in_system_namespace(place, ref) for ref in refs)
        or any(count > 1 for count in refs.values())
    ):
        return False
    if place["scripts"]:
        wanted = f"{SCRIPTS_VOLUME}-{place['scripts']}"
        is_known = all(ref.kind == "ConfigMap" and ref.name == wanted for ref in refs)
    elif place["run"]:
        is_known = all(may_be_part_of_rendered_run(ref, place["run"]) for ref in refs) and len(own) == 1
    else:
        is_known = all(_is_in(place["platform"] or place["tenant"], ref) for ref in refs)
    return is_known and all(_is_marked(body) and _grants_only_rendered_rights(body) for body in bodies)


def _is_past_object_in_system_namespace(place: re.Match[str], ref: Ref) -> bool:
    """Return whether an object is in a namespace of the system, or is one.

    Alerts and dashboards are where Prometheus and Grafana look for them, under names that nothing of the
    system has.
    """
    namespace = ref.name if ref.kind == "Namespace" else ref.namespace
    is_monitoring = bool(place["platform"] and ref.namespace and ref.name.startswith("gangplan-"))
    return RESERVED_NAMESPACES.fullmatch(namespace) is not None and not is_monitoring


def _grants_only_rendered_rights(body: Body) -> bool:
    """Return whether an object grants no more than a render does: a gangplan role, a namespace of
    restricted pods."""
    if body["kind"] == "RoleBinding":
        return (body.get("roleRef") or {}).get("name") in BOUND_ROLES
    if body["kind"] == "Namespace":
        return bool(body["metadata"]["labels"].get("pod-security.kubernetes.io/enforce") == "restricted")
    return True


def may_be_part_of_rendered_run(ref: Ref, run: str) -> bool:
    """Return whether an object may be part of a run; what starts a schedule has the job's name, without a
    hash."""
    is_named = f"{ref.name}-".startswith(f"{run}-") or (
        ref.kind == "CronJob" and ref.name == run.rpartition("-")[0]
    )
    return _is_in("runs", ref) and is_named


def _is_in(part: str, ref: Ref) -> bool:
    """Return whether objects of its kind belong in files of a part."""
    return any(one.name == ref.kind for one in find_kinds_of_parts(_PARTS[part]))


def _has_source_expected_for_rendered_path(place: re.Match[str], source: str) -> bool:
    """Return whether a file comes from where files of its name come from."""
    if place["run"]:
        return source.startswith(f"specs/{place['owner']}/")
    if place["scripts"]:
        return source == team_source_of(place["mounting"])
    if place["team"]:
        return source == f"specs/{place['team']}/team.yaml"
    return source == f"overlays/{place['cluster']}/cluster.yaml"


def is_past_rendered_object(path: str, body: Body, wanted: Collection[Ref]) -> bool:
    """Return whether an additional object in a file that is rendered now may have been rendered before."""
    place, ref = _PLACE.fullmatch(path), ref_of(body)
    if place is None or place["scripts"] or ref in wanted or ref.kind in _RIGHTS or not _is_marked(body):
        return False
    if place["run"]:
        is_home = {ref.namespace} == {one.namespace for one in wanted}
        return is_home and _may_start_rendered_run(ref, place["run"])
    is_near = ref.namespace in {"", *(one.namespace for one in wanted)} or ref.name.startswith("gangplan-")
    return _is_in(place["platform"] or place["tenant"], ref) and is_near


def _may_start_rendered_run(ref: Ref, run: str) -> bool:
    """Return whether an object may be what starts a run later: its template, a Job that waits, a schedule."""
    if ref.kind == "CronJob":
        return may_be_part_of_rendered_run(ref, run)
    ending = _STARTERS.get(ref.kind)
    return ending is not None and re.fullmatch(re.escape(run) + ending, ref.name) is not None


def _is_marked(body: Body) -> bool:
    labels = (body.get("metadata") or {}).get("labels")
    return isinstance(labels, dict) and labels.get("app.kubernetes.io/managed-by") == "gangplan"
