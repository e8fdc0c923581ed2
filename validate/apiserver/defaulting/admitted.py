"""What the webhooks of Trainer and Kueue fill in before policies judge an object.

Source: Kueue 0.15 to 0.19, pkg/controller/jobs/trainjob and pkg/webhooks. The time that Trainer stamps on
runtimePatches is left out: it cannot be known in advance, and no policy should depend on it.
"""

from __future__ import annotations

from gangplan.model.backend import TRAINJOB
from gangplan.model.support import look_up_kueue_line
from gangplan.objects import Body
from gangplan.validate.apiserver.schema import SchemaVersions

QUEUE = "kueue.x-k8s.io/queue-name"
IN_USE = "kueue.x-k8s.io/resource-in-use"
MANAGER = "kueue.x-k8s.io/manager"


def fill_kueue_webhook_defaults(body: Body, versions: SchemaVersions) -> Body:
    """Return the object with what the webhooks set if the cluster has Kueue.

    Unchanged parts are not copied.
    """
    metadata = body.get("metadata")
    if versions.kueue is None or not isinstance(metadata, dict):
        return body
    group = str(body.get("apiVersion") or "").rpartition("/")[0]
    if (group, body.get("kind")) == (TRAINJOB.group, TRAINJOB.kind):
        return _fill_train_job_webhook_defaults(body, versions)
    if group == "kueue.x-k8s.io" and body.get("kind") in ("ClusterQueue", "ResourceFlavor"):
        finalizers = metadata.get("finalizers", [])
        if isinstance(finalizers, list) and IN_USE not in finalizers:
            return {**body, "metadata": {**metadata, "finalizers": [*finalizers, IN_USE]}}
    return body


def _fill_train_job_webhook_defaults(body: Body, versions: SchemaVersions) -> Body:
    spec = body.get("spec", {})
    if not isinstance(spec, dict):
        return body
    spec = dict(spec)
    if (body["metadata"].get("labels") or {}).get(QUEUE):
        spec["suspend"] = True
    if look_up_kueue_line(versions.kueue).patches_on_create:
        patches = spec.get("runtimePatches", [])
        if isinstance(patches, list):
            empty: Body = {"template": {"spec": {}}}
            spec["runtimePatches"] = [*patches, {"manager": MANAGER, "trainingRuntimeSpec": empty}]
    return {**body, "spec": spec}
