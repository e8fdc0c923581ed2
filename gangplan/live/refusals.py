"""Parse a refusal of an API server: who refused, which field and why; or why there was no verdict.

Sources of the texts: Kubernetes 1.30 to 1.37, staging/src/k8s.io/apiserver/pkg/admission (plugin/webhook,
plugin/policy, plugin/resourcequota) and pkg/endpoints/handlers; recorded from the lab
(tests/live/refusals.json).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum

from gangplan.findings import FieldPath
from gangplan.live.access import ApiRefusedError, ForbiddenError
from gangplan.records import dataclass


class Refuser(Enum):
    """What refused an object."""

    SCHEMA = "the API server"
    POLICY = "an admission policy"
    WEBHOOK = "an admission webhook"
    QUOTA = "a quota"


class NoVerdict(Enum):
    """Why there was no verdict on an object."""

    NAMESPACE = "namespace"
    KIND = "kind"
    RIGHTS = "rights"
    UNREACHABLE = "webhook"
    DRY_RUN = "dry run"
    EARLIER = "earlier object"


@dataclass(frozen=True, slots=True)
class ServerRefusal:
    """One objection of an API server to an object, or why there was no verdict (`by` is Unasked).

    `name` is the policy, webhook, quota, namespace or right; `path` the field, empty if none is named.
    """

    by: Refuser | NoVerdict
    words: str
    name: str = ""
    path: FieldPath = ()


_POLICY = re.compile(
    r"ValidatingAdmissionPolicy '(?P<name>[^']+)'(?: with binding '[^']+')? denied request: (?P<words>.*)",
    re.S,
)
_DENIED = re.compile(
    r'admission webhook "(?P<name>[^"]+)" denied the request(?: without explanation)?:? ?(?P<words>.*)', re.S
)
_CALLING = re.compile(r'failed calling webhook "(?P<name>[^"]+)": (?P<words>.*)', re.S)
_NO_DRY_RUN = re.compile(r'admission webhook "?(?P<name>[^" ]+)"? does not support dry run')
_QUOTA = re.compile(r"(?P<words>(?:exceeded|failed) quota: (?P<name>[^,:]+)[,:] .*)", re.S)
_SECURITY = re.compile(r'violates PodSecurity "(?P<name>[^"]+)": (?P<words>.*)', re.S)
_GRANT = "attempting to grant RBAC permissions not currently held"
_NO_NAMESPACE = re.compile(r'namespaces "(?P<name>[^"]+)" not found')
# What the webhooks of Trainer and Kueue answer about a run whose runtime is applied just before it. A dry run
# does not apply the runtime; both webhooks are asked at once, so either may answer first (trainer v2.1.0 to
# v2.3.0, pkg/runtime/core, "must be created before the TrainJob is created"; kueue v0.15.2 to v0.19.2,
# pkg/controller/jobs/trainjob, "runtime 'x' not found").
_EARLIER = re.compile(
    r"must be created before the TrainJob is created|TrainingRuntime.* not found|\bruntime '[^']+' not found",
    re.S,
)
_TYPED = re.compile(r"failed to create typed patch object \([^)]*\): (?P<words>.*)", re.S)
_DECODING = re.compile(r"strict decoding error: (?P<words>.*)", re.S)
_FIELD = re.compile(
    r"(?<![\w/])\.?(?P<path>(?:spec|metadata|data|rules|subjects|roleRef)(?:\.[A-Za-z][\w-]*|\[[^\]]*\])+)"
)
_STEP = re.compile(r"\[(?P<inside>[^\]]*)\]|(?P<name>[^.\[\]]+)")
_BEFORE = re.compile(r"^\S+ \"[^\"]*\" is (?:invalid|forbidden): ")


def parse_server_refusals(error: ApiRefusedError) -> list[ServerRefusal]:
    """Return all objections in a refusal, one for each field that it names."""
    words = error.words
    if isinstance(error, ForbiddenError) or _GRANT in words:
        name = str(error.right) if isinstance(error, ForbiddenError) else "grant rights that you do not have"
        return [ServerRefusal(NoVerdict.RIGHTS, words, name)]
    return [_parse_missing_dry_run_verdict(error) or one for one in _parse_server_refusal_message(error)]


def _parse_missing_dry_run_verdict(error: ApiRefusedError) -> ServerRefusal | None:
    """Return why there was no verdict, or None."""
    words = error.words
    if match := _CALLING.search(words):
        return ServerRefusal(NoVerdict.UNREACHABLE, match["words"], match["name"])
    if match := _NO_DRY_RUN.search(words):
        return ServerRefusal(NoVerdict.DRY_RUN, words, match["name"])
    if error.status == 404:
        if match := _NO_NAMESPACE.search(words):
            return ServerRefusal(NoVerdict.NAMESPACE, words, match["name"])
        return ServerRefusal(NoVerdict.KIND, words)
    if _EARLIER.search(words):
        return ServerRefusal(NoVerdict.EARLIER, words)
    return None


def _parse_server_refusal_message(error: ApiRefusedError) -> Iterator[ServerRefusal]:
    words = error.words
    if match := _POLICY.search(words):
        yield ServerRefusal(
            Refuser.POLICY, _collapse_whitespace(match["words"]), match["name"], field_of(match["words"])
        )
    elif match := _DENIED.search(words):
        said = match["words"].strip().removeprefix("[").removesuffix("]")
        yield ServerRefusal(
            Refuser.WEBHOOK, _collapse_whitespace(said) or "no reason given", match["name"], field_of(said)
        )
    elif match := _QUOTA.search(words):
        yield ServerRefusal(Refuser.QUOTA, _collapse_whitespace(match["words"]), match["name"])
    elif match := _SECURITY.search(words):
        yield ServerRefusal(
            Refuser.POLICY, _collapse_whitespace(match["words"]), f"PodSecurity {match['name']}"
        )
    elif match := _TYPED.search(words) or _DECODING.search(words):
        yield ServerRefusal(
            Refuser.SCHEMA, _collapse_whitespace(match["words"]), "", field_of(match["words"])
        )
    else:
        yield from _parse_status_causes(error)


def _parse_status_causes(error: ApiRefusedError) -> Iterator[ServerRefusal]:
    """Yield the fields that the server names (Status.details.causes), or the message as a whole."""
    causes = error.details.get("causes") or ()
    for one in causes:
        field, said = str(one.get("field") or ""), _collapse_whitespace(str(one.get("message") or ""))
        if field and field != "<nil>":
            yield ServerRefusal(Refuser.SCHEMA, f"{field}: {said}", "", parse_path_of_refused_field(field))
        else:
            yield ServerRefusal(Refuser.SCHEMA, said, "", field_of(said))
    if not causes:
        said = _collapse_whitespace(_BEFORE.sub("", error.words)) or f"status {error.status}"
        yield ServerRefusal(Refuser.SCHEMA, said, "", field_of(said))


def field_of(words: str) -> FieldPath:
    """Return the first field that a text names, as a path; empty if it names none."""
    match = _FIELD.search(words)
    return parse_path_of_refused_field(match["path"]) if match else ()


def parse_path_of_refused_field(field: str) -> FieldPath:
    """Parse a field such as `spec.template.containers[0].image` or `metadata.labels[a.b/c]` into a path."""
    found: list[str | int] = []
    for step in _STEP.finditer(field):
        inside = step["inside"]
        if inside is None:
            found.append(step["name"])
        else:
            text = inside.strip("\"'")
            found.append(int(text) if text.isdigit() else text)
    return tuple(found)


def _collapse_whitespace(text: str) -> str:
    return " ".join(text.split())
