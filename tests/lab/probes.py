"""Ask each controller's webhook for something that only it can answer."""

from __future__ import annotations

from . import client
from .client import Client, Object

PROBE = "gangplan-lab-probe"
METADATA = {"name": PROBE, "namespace": "default"}


def answers(api: Client, name: str) -> bool:
    """Return whether a controller's webhook took part in a dry run."""
    return _PROBES[name](api)


def _kueue(api: Client) -> bool:
    """Return whether Kueue's webhook puts a finalizer on a new flavor."""
    version = api.resource("ResourceFlavor").api_version
    item = {"apiVersion": version, "kind": "ResourceFlavor", "metadata": {"name": PROBE}, "spec": {}}
    return bool(_sent(api, item).get("metadata", {}).get("finalizers"))


def _jobset(api: Client) -> bool:
    """Return whether JobSet's webhook fills in the network."""
    spec = {"replicatedJobs": [{"name": "a", "template": {"spec": _job()}}]}
    item = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": METADATA, "spec": spec}
    return "enableDNSHostnames" in _sent(api, item).get("spec", {}).get("network", {})


def _trainer(api: Client) -> bool:
    """Return whether Trainer's webhook refuses a run whose runtime does not exist."""
    spec = {"runtimeRef": {"kind": "TrainingRuntime", "name": "gangplan-none"}}
    item = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": METADATA,
        "spec": spec,
    }
    try:
        api.create(item, dry_run=True)
    except client.ApiError as error:
        return error.status < 500 and "gangplan-none" in error.message
    return False


def _sent(api: Client, item: Object) -> Object:
    """Return what the server would store if an object were created."""
    try:
        return api.create(item, dry_run=True).object
    except client.ApiError as error:
        if error.status < 500:
            raise
        return {}


def _job() -> Object:
    pod = {"restartPolicy": "Never", "containers": [{"name": "a", "image": "registry.example.com/a"}]}
    return {"template": {"spec": pod}}


_PROBES = {"kueue": _kueue, "jobset": _jobset, "trainer": _trainer}
