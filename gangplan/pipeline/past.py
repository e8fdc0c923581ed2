"""What an earlier render may have written into rendered/, and the next one takes away: stale, not foreign.

Nobody can tell it from a careful copy by its looks, so this is only about what would do little harm, and
`render --check` refuses all of it: a file under a name that gangplan gives, from the file that it says it is
from, with its label on each object, of the kinds that stand there, in a namespace of its own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from gangplan.generators import PLATFORM_GENERATORS
from gangplan.generators.tenants import DEBUGGER, ROLE_OF
from gangplan.model.kinds import Part, kinds_of
from gangplan.model.schedule import ACCOUNT
from gangplan.objects import Body, Ref, ref_of
from gangplan.spec.namespaces import RESERVED

# The parts of a tree by what their files are called.
_PARTS: Mapping[str, Part] = {
    "runs": "runs",
    **dict.fromkeys(PLATFORM_GENERATORS, "platform"),
    "platform": "platform",  # of a tree before its platform was divided
    "policies": "policies",
    "tenant": "tenants",
}
# The roles that bindings of a tenant name.
BOUND_ROLES = frozenset(
    {*ROLE_OF.values(), DEBUGGER, "mpijob-creator", ACCOUNT, "system:openshift:scc:nonroot-v2"}
)
# What grants rights is applied at once, and never little harm in a file that is rendered.
_RIGHTS = ("ClusterRole", "RoleBinding", "ServiceAccount", "Namespace")
_FILES = "|".join((*PLATFORM_GENERATORS, "platform", "policies"))
_PLACE = re.compile(
    rf"(?P<cluster>[^/]+)/(?:platform/(?P<platform>{_FILES})"
    r"|tenants/(?P<team>[^/]+)/(?P<tenant>tenant)"
    r"|runs/(?P<owner>[^/]+)/(?P<run>[^/]+-[0-9a-f]{8}))\.yaml"
)


def is_past_file(path: str, source: str, bodies: Sequence[Body], taken: Collection[str]) -> bool:
    """Whether a render may have written a file that is not rendered now; `taken` are namespaces of today."""
    place = _PLACE.fullmatch(path)
    if place is None or not _fits(place, source):
        return False
    refs = Counter(map(ref_of, bodies))
    own = {ref.name for ref in refs if ref.kind == "Namespace"} or {ref.namespace for ref in refs} - {""}
    is_own = all(ref.namespace in (*own, "") for ref in refs) and not (own & {*taken})
    if not is_own or any(RESERVED.fullmatch(one) for one in own) or any(count > 1 for count in refs.values()):
        return False
    if place["run"]:
        is_known = all(is_part(ref, place["run"]) for ref in refs) and len(own) == 1
    else:
        is_known = all(_is_in(place["platform"] or place["tenant"], ref) for ref in refs)
    return is_known and all(_is_marked(body) and _grants_little(body) for body in bodies)


def _grants_little(body: Body) -> bool:
    """Whether it gives no more than a render does: a role of gangplan, a namespace of restricted pods."""
    if body["kind"] == "RoleBinding":
        return (body.get("roleRef") or {}).get("name") in BOUND_ROLES
    if body["kind"] == "Namespace":
        return bool(body["metadata"]["labels"].get("pod-security.kubernetes.io/enforce") == "restricted")
    return True


def is_part(ref: Ref, run: str) -> bool:
    """Whether an object may be part of a run; what starts a schedule is called as the job, without a hash."""
    is_named = f"{ref.name}-".startswith(f"{run}-") or (
        ref.kind == "CronJob" and ref.name == run.rpartition("-")[0]
    )
    return _is_in("runs", ref) and is_named


def _is_in(part: str, ref: Ref) -> bool:
    """Whether objects of its kind stand in files of a part."""
    return any(one.name == ref.kind for one in kinds_of(_PARTS[part]))


def _fits(place: re.Match[str], source: str) -> bool:
    """Whether a file comes from where files of its name come from."""
    if place["run"]:
        return source.startswith(f"specs/{place['owner']}/")
    if place["team"]:
        return source == f"specs/{place['team']}/team.yaml"
    return source == f"overlays/{place['cluster']}/cluster.yaml"


def is_past_object(path: str, body: Body, wanted: Collection[Ref]) -> bool:
    """Whether an object more in a file that is rendered now may have been rendered before."""
    place, ref = _PLACE.fullmatch(path), ref_of(body)
    if place is None or place["run"] or ref in wanted or ref.kind in _RIGHTS or not _is_marked(body):
        return False
    is_near = ref.namespace in {"", *(one.namespace for one in wanted)} or ref.name.startswith("gangplan-")
    return _is_in(place["platform"] or place["tenant"], ref) and is_near


def _is_marked(body: Body) -> bool:
    labels = (body.get("metadata") or {}).get("labels")
    return isinstance(labels, dict) and labels.get("app.kubernetes.io/managed-by") == "gangplan"
