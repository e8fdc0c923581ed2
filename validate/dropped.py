"""What servers accept and then drop: a status in a manifest, and an object whose owner does not exist.

Sources: Kubernetes v1.34, the strategies of its kinds and of custom resources (PrepareForCreate,
PrepareForUpdate) and pkg/controller/garbagecollector.
"""

from __future__ import annotations

from gangplan.model.backend import RUNTIME_KINDS
from gangplan.objects import Body
from gangplan.rules.lifecycle import OWNER_REFERENCE, STATUS_IGNORED
from gangplan.rules.objects import SCHEMA
from gangplan.validate.apiserver.forms import FoundProblems
from gangplan.validate.problems import Problem

# Kinds with a spec and no status (k8s.io/api v0.33 and v0.34, Trainer 2.1 to 2.3, Kueue 0.15 to 0.19).
WITHOUT_STATUS = frozenset(
    {
        *("LimitRange", "NetworkPolicy", "ValidatingAdmissionPolicyBinding"),
        *RUNTIME_KINDS,
        *("MultiKueueConfig", "ProvisioningRequestConfig", "ResourceFlavor", "Topology"),
    }
)


def check_unknown_status(body: Body) -> FoundProblems:
    """Report a status of a kind that has no status field."""
    if "status" in body and body["kind"] in WITHOUT_STATUS:
        message = f"unknown field 'status': a {body['kind']} has none"
        yield Problem(("status",), message, "Remove it.", SCHEMA)


def check_fields_that_server_drops(body: Body) -> FoundProblems:
    """Report owner references and a status, which a server accepts and then acts on or ignores."""
    if (body.get("metadata") or {}).get("ownerReferences"):
        message = (
            "an owner reference needs a uid that only the cluster knows: the object is deleted as soon as the"
            " garbage collector finds no such owner"
        )
        yield Problem(("metadata", "ownerReferences"), message, "Remove it.", OWNER_REFERENCE)
    if body.get("status"):
        message = f"the status of a {body['kind']} is written by its controller: servers drop the one in Git"
        yield Problem(("status",), message, "Remove it from the patch.", STATUS_IGNORED)
