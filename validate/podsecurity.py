"""Pods that their namespace's Pod Security level refuses: the run would be admitted and never get its pods.

Where the cluster's file raised the level, also what the pods use of it.

Source: k8s.io/pod-security-admission v0.34, api/helpers.go (labels of namespaces). What a level refuses is in
`apiserver/pod_security.py`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from gangplan.model.backend import BY_HOLDER
from gangplan.rules.model import NOTE
from gangplan.rules.security import HOST_ACCESS, POD_SECURITY
from gangplan.validate.apiserver.forms import Body, Path
from gangplan.validate.apiserver.pod_security import violations
from gangplan.validate.problems import Problem
from gangplan.validate.world import BuiltRun, World, templates_of

ENFORCED = "pod-security.kubernetes.io/enforce"
VERSION = f"{ENFORCED}-version"
# Stands on namespaces whose level the cluster's file states.
STATED = "gangplan.dev/pod-security-until"
# How many things one finding names.
MOST = 5
Said = tuple[Path, str]
_MINOR = re.compile(r"v1\.([0-9]|[1-9][0-9]*)")


def enforced(labels: dict[str, str], server: int) -> tuple[str, int]:
    """Level and minor that a namespace with these labels enforces on a server of a minor (34 of 1.34).

    A level that nobody knows is restricted, a version that nobody knows the newest, as in admission.
    """
    level = labels.get(ENFORCED, "privileged")
    version = _MINOR.fullmatch(labels.get(VERSION) or "latest")
    known = level if level in ("privileged", "baseline", "restricted") else "restricted"
    return known, min(int(version[1]), server) if version else server


def allowed(world: World, run: BuiltRun) -> Iterator[tuple[int, Problem]]:
    """Every pod of the run against the level that the run's namespace enforces."""
    server = int(world.versions.kubernetes.split(".")[1])
    for index, body in enumerate(run.bodies):
        if body["kind"] not in BY_HOLDER:
            continue
        namespace = body["metadata"].get("namespace", "")
        metadata = (world.find("Namespace", namespace) or {}).get("metadata", {})
        level, minor = enforced(metadata.get("labels") or {}, server)
        refused = [] if level == "privileged" else list(_broken(body, level == "restricted", minor, server))
        for where, what in refused:
            yield index, _problem(where, what, namespace, f"{level} of v1.{minor}")
        if level != "restricted" and STATED in (metadata.get("annotations") or {}):
            used = [one for one in _broken(body, True, minor, server) if one not in refused]
            generated = next((one for one in run.generated if one["kind"] == body["kind"]), body)
            planned = {what for _, what in _broken(generated, True, minor, server)} if used else ()
            yield from ((index, one) for one in _used(used, planned, namespace, level))


def _broken(body: Body, is_restricted: bool, minor: int, server: int) -> Iterator[Said]:
    """What a level refuses of the pods of a runtime or an MPIJob."""
    for at, pod in templates_of(body):
        for _, where, what in violations(pod, is_restricted, minor, server):
            yield (*at, *where), what


def _used(used: Sequence[Said], planned: Collection[str], namespace: str, level: str) -> Iterator[Problem]:
    """What pods use of a raised level: all that a fabric declares as one, what a patch adds one by one."""
    declared = [one for one in used if one[1] in planned]
    admits = f"namespace '{namespace}' admits it (Pod Security level {level})"
    if declared:
        shown = list(dict.fromkeys(what for _, what in declared))
        more = f" and {len(shown) - MOST} more" if len(shown) > MOST else ""
        message = f"{'; '.join(shown[:MOST])}{more}: the pool's fabric declares it, and {admits}"
        help = 'Write rdma: "off" where TCP is enough.'
        yield Problem(declared[0][0], message, help, HOST_ACCESS, "rdma", NOTE)
    for where, what in used:
        if what not in planned:
            help = "Remove it from the overlay's patch, or declare it in a fabric of the cluster's file."
            yield Problem(where, f"{what}, which no fabric declares; {admits}", help, HOST_ACCESS)


def _problem(at: Path, what: str, namespace: str, level: str) -> Problem:
    return Problem(
        at,
        f"{what}, which namespace '{namespace}' refuses (Pod Security level {level}): the run is admitted"
        " but never gets its pods",
        _help(at),
        POD_SECURITY,
    )


def _help(at: Path) -> str:
    if at[-2:] != ("capabilities", "add"):
        return "Remove it from the overlay's patch."
    return (
        "Remove it from the overlay's patch; no waiver changes what a namespace enforces. RDMA needs no"
        " IPC_LOCK on nodes whose memlock limit is unlimited."
    )
