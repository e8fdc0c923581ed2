"""The devices that pods get by claims: what their ResourceClaimTemplates ask for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gangplan.model.kinds import CLAIM_TEMPLATE_KIND
from gangplan.objects import Body

# What Kueue counts of no claim (v0.18.2 and v0.19.2, pkg/dra/claims.go, countDevicesPerClass).
_UNCOUNTABLE = "is not supported"


def count_claimed_devices(
    template: Body, bodies: Sequence[Body], container: Body | None = None
) -> tuple[tuple[str, int], ...]:
    """Return the devices that a pod gets by templates among `bodies`, by class, sorted.

    With a container, only those of claims and requests that the container uses. Requests without a number
    are left out.
    """
    used = None if container is None else _list_container_claims(container)
    found: dict[str, int] = {}
    for name, request in _iterate_device_requests(template, bodies):
        is_used = used is None or not used.isdisjoint({(name, ""), (name, request["name"])})
        if is_used and not explain_uncountable_request(request):
            exactly = request["exactly"]
            device_class = exactly["deviceClassName"]
            found[device_class] = found.get(device_class, 0) + int(exactly.get("count") or 1)
    return tuple(sorted(found.items()))


def find_uncountable_claim(template: Body, bodies: Sequence[Body]) -> str:
    """Return why Kueue admits no pod with these claims; empty if it counts all of them."""
    for name, request in _iterate_device_requests(template, bodies):
        if why := explain_uncountable_request(request):
            return f"claim {name}: {why} {_UNCOUNTABLE}"
    return ""


def explain_uncountable_request(request: Body) -> str:
    """Return what makes a request uncountable, in Kueue's words; empty if it asks for a number of devices."""
    exactly = request.get("exactly") or {}
    if request.get("firstAvailable"):
        return "FirstAvailable device selection"
    if exactly.get("adminAccess"):
        return "AdminAccess"
    return "AllocationMode 'All'" if exactly.get("allocationMode") == "All" else ""


def _list_container_claims(container: Body) -> frozenset[tuple[str, str]]:
    """Return the claims that a container uses: of each its name, and one request, or "" for all of them."""
    claims: Sequence[Body] = (container.get("resources") or {}).get("claims") or ()
    return frozenset((one["name"], one.get("request") or "") for one in claims)


def _iterate_device_requests(template: Body, bodies: Sequence[Body]) -> Iterator[tuple[str, Body]]:
    """Yield the requests of a pod's claims, each with the name of its claim in the pod."""
    claims = (template.get("spec") or {}).get("resourceClaims")
    if not claims:
        return
    made = {body["metadata"]["name"]: body for body in bodies if body["kind"] == CLAIM_TEMPLATE_KIND}
    for claim in claims:
        body = made.get(claim.get("resourceClaimTemplateName") or "")
        if body is not None:
            for request in (body["spec"]["spec"].get("devices") or {}).get("requests") or ():
                yield claim["name"], request
