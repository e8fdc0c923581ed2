"""What a real kubelet, containerd and runc report of pods that do not start or that fail
(tests/e2e/kubelet.py).

`--update` records it into tests/diagnose/recorded/node.yaml, with the names of the tests as titles.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.diagnose.samples import Sample, keep, save, trimmed
from tests.diagnose.test_causes import judged
from tests.e2e import kubelet
from tests.images import made, real
from tests.images.registry import PASSWORD, USER, Store
from tests.lab import fixtures
from tests.lab.client import poll
from tests.lab.lab import Lab
from tests.reality import debian

pytestmark = pytest.mark.e2e
TEAM, RUN = "nlp", "train-1a2b3c4d"
PATIENCE = 120.0


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Run a lab whose only node is a real one."""
    if "GANGPLAN_KUBELET" not in os.environ:
        pytest.skip("GANGPLAN_KUBELET is not set: `make node` joins a real kubelet (root, cgroups)")
    profile = fixtures.chosen()
    if profile.name != "new":
        pytest.skip("one kubelet is enough")
    fixtures.require(profile)
    folder = tmp_path_factory.mktemp("k") / "n"
    with Lab(profile, nodes=()) as lab, kubelet.joined(lab, folder):
        lab.site_of_kubelet = folder  # type: ignore[attr-defined]
        lab.client.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM}})
        poll(lambda: lab.client.find("ServiceAccount", "default", TEAM), 60, lambda: "no account")
        yield lab


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[real.Real]:
    """Run a registry without accounts, with an image for other processors."""
    with real.running(tmp_path_factory.mktemp("registry")) as found:
        store = Store()
        made.index(
            store, "training/openmpi", {"arm64": kubelet.image(store, "arm64")}, "5.0", is_signed=False
        )
        found.push(store, "training/openmpi")
        yield found


def pod(name: str, container: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """Return a pod of a run on the machine's network."""
    labels = {"jobset.sigs.k8s.io/jobset-name": RUN, "jobset.sigs.k8s.io/replicatedjob-name": "node"}
    whole = {
        "restartPolicy": "Never",
        "hostNetwork": True,
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 1,
        "containers": [
            {"name": "node", "image": kubelet.LOCAL, "imagePullPolicy": "IfNotPresent", **container}
        ],
        **spec,
    }
    metadata = {"name": f"{RUN}-node-0-3-{name}", "namespace": TEAM, "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": whole}


@pytest.fixture
def told(node: Lab, tmp_path: Path, request: pytest.FixtureRequest) -> Callable[..., None]:
    """Return a check that starts a pod, waits until the node's reports lead to the cause, and records
    them."""

    def check(cause: str, container: dict[str, Any], of: str = "Pod", **spec: Any) -> None:
        name = hashlib.sha256(request.node.name.encode()).hexdigest()[:5]
        body = pod(name, container, **spec)
        node.client.apply_patiently(body, timeout=30)
        full = body["metadata"]["name"]
        seen: list[Any] = []

        def objects() -> list[dict[str, Any]]:
            own = [{"apiVersion": "v1", "kind": "Pod", **node.client.get("Pod", full, TEAM)}]
            events = [
                {"apiVersion": "v1", "kind": "Event", **one}
                for one in node.client.list("Event", TEAM)
                if one["involvedObject"]["name"] == full and one["type"] == "Warning"
            ]
            text = json.dumps([trimmed(one) for one in own + (events if of == "Event" else [])])
            found: list[dict[str, Any]] = json.loads(text.replace(str(node.site_of_kubelet), "/opt"))  # type: ignore[attr-defined]
            return found

        def leads() -> bool:
            seen[:] = [objects()]
            (verdict,) = judged(save(tmp_path, Sample("", cause, "", "", "", seen[0]))) or (None,)
            seen.append(verdict and [one.cause.id for one in verdict.found])
            return bool(seen[1]) and seen[1][0] == cause

        try:
            poll(leads, PATIENCE, lambda: f"not {cause}: {json.dumps(seen)[-3000:]}", every=0.5)
        finally:
            node.client.delete("Pod", full, TEAM)
        if request.config.getoption("--update"):
            title = request.node.name.removeprefix("test_").replace("_", " ")
            keep("node", Sample(title, cause, versions(node), "tests/e2e/test_kubelet.py", "", seen[0]))

    return check


def versions(lab: Lab) -> str:
    """Return the versions of kubelet, containerd and runc."""
    tree = debian.unpacked("containerd", "runc")
    said = [
        subprocess.run([tree / place, "--version"], capture_output=True, text=True, check=True).stdout.split()
        for place in ("usr/bin/containerd", "usr/sbin/runc")
    ]
    containerd, runc = said[0][2].partition("~")[0], said[1][2].partition("+")[0]
    return f"kubelet {lab.profile.kubernetes}, containerd {containerd}, runc {runc}"


SH = ["/bin/sh", "-c"]


# -- images


def test_a_tag_that_is_not_there(registry: real.Real, told: Callable[..., None]) -> None:
    told("image-not-found", {"image": f"{registry.host}/training/openmpi:4.1"})


def test_a_repository_that_is_not_there(registry: real.Real, told: Callable[..., None]) -> None:
    told("image-not-found", {"image": f"{registry.host}/training/opnempi:5.0"})


def test_an_image_for_other_processors(registry: real.Real, told: Callable[..., None]) -> None:
    told("image-architecture", {"image": f"{registry.host}/training/openmpi:5.0"})


def test_a_registry_that_wants_an_account(tmp_path: Path, told: Callable[..., None]) -> None:
    (tmp_path / "accounts").write_text(real.HTPASSWD)
    auth = {"htpasswd": {"realm": "registry", "path": str(tmp_path / "accounts")}}
    with real.running(tmp_path / "registry", auth=auth) as closed:
        told("image-forbidden", {"image": f"{closed.host}/training/openmpi:5.0"})


def test_a_registry_and_a_wrong_password(node: Lab, tmp_path: Path, told: Callable[..., None]) -> None:
    (tmp_path / "accounts").write_text(real.HTPASSWD)
    auth = {"htpasswd": {"realm": "registry", "path": str(tmp_path / "accounts")}}
    with real.running(tmp_path / "registry", auth=auth) as closed:
        login = base64.b64encode(f"{USER}:{PASSWORD[::-1]}".encode()).decode()
        config = json.dumps({"auths": {closed.host: {"auth": login}}})
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "pull", "namespace": TEAM}}
        node.client.apply(
            {**secret, "type": "kubernetes.io/dockerconfigjson", "stringData": {".dockerconfigjson": config}}
        )
        told(
            "image-forbidden",
            {"image": f"{closed.host}/training/openmpi:5.0"},
            imagePullSecrets=[{"name": "pull"}],
        )


def test_a_registry_that_refuses_connections(told: Callable[..., None]) -> None:
    told("registry-unreachable", {"image": "127.0.0.1:1/training/openmpi:5.0"})


def test_a_registry_whose_name_is_not_known(told: Callable[..., None]) -> None:
    told("registry-unreachable", {"image": "registry.invalid/training/openmpi:5.0"})


def test_a_name_that_is_not_an_image(told: Callable[..., None]) -> None:
    told("image-name", {"image": "registry.example.com/Training/OpenMPI:5.0"})


def test_an_image_that_must_be_there_and_is_not(told: Callable[..., None]) -> None:
    told(
        "image-not-found", {"image": "registry.example.com/training/openmpi:5.0", "imagePullPolicy": "Never"}
    )


def test_an_image_of_root(told: Callable[..., None]) -> None:
    told("image-root", {"securityContext": {"runAsNonRoot": True}})


# -- starting


def test_a_secret_that_is_not_there(told: Callable[..., None]) -> None:
    source = {"secretKeyRef": {"name": "huggingface", "key": "token"}}
    told("config-missing", {"env": [{"name": "HF_TOKEN", "valueFrom": source}]})


def test_a_config_map_that_is_not_there(told: Callable[..., None]) -> None:
    told("config-missing", {"envFrom": [{"configMapRef": {"name": "settings"}}]})


def test_a_key_that_a_secret_does_not_have(node: Lab, told: Callable[..., None]) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "wandb", "namespace": TEAM}}
    node.client.apply({**secret, "stringData": {"key": "x"}})
    source = {"secretKeyRef": {"name": "wandb", "key": "token"}}
    told("config-missing", {"env": [{"name": "WANDB", "valueFrom": source}]})


def test_a_program_that_is_not_on_path(told: Callable[..., None]) -> None:
    told("program-missing", {"command": ["trian.py"]})


def test_a_program_at_a_path_that_is_not_there(told: Callable[..., None]) -> None:
    told("program-missing", {"command": ["/app/train.py"]})


def test_a_file_that_is_not_a_program(told: Callable[..., None]) -> None:
    told("program-not-executable", {"command": ["/etc/motd"]})


def test_a_program_that_a_shell_does_not_find(told: Callable[..., None]) -> None:
    told("program-missing", {"command": [*SH, "trian.py"]})


def test_a_volume_of_a_secret_that_is_not_there(told: Callable[..., None]) -> None:
    volumes = [{"name": "keys", "secret": {"secretName": "ssh-keys"}}]
    told(
        "config-missing", {"volumeMounts": [{"name": "keys", "mountPath": "/keys"}]}, "Event", volumes=volumes
    )


def test_a_network_plugin_that_is_not_there(told: Callable[..., None]) -> None:
    told("pod-network", {}, "Event", hostNetwork=False)


# -- ending


def test_more_memory_than_its_limit(told: Callable[..., None]) -> None:
    # containerd 1.6 may learn of the end of a container before it learns why: this one ends later.
    limits = {"resources": {"limits": {"memory": "32Mi"}}}
    told("out-of-memory", {"command": [*SH, "tail /dev/zero; code=$?; sleep 3; exit $code"], **limits})


def test_a_process_that_is_killed(told: Callable[..., None]) -> None:
    told("killed", {"command": [*SH, "sh -c 'kill -9 $$$$'; exit $?"]})


def test_a_program_that_ends_with_a_code(told: Callable[..., None]) -> None:
    told("program-failed", {"command": [*SH, "exit 3"]})


def test_a_program_that_crashes(told: Callable[..., None]) -> None:
    told("segmentation-fault", {"command": [*SH, "sh -c 'kill -SEGV $$$$'; exit $?"]})


def test_scratch_that_overflows(told: Callable[..., None]) -> None:
    volumes = [{"name": "scratch", "emptyDir": {"sizeLimit": "1Mi"}}]
    mounts = [{"name": "scratch", "mountPath": "/scratch"}]
    fills = "dd if=/dev/zero of=/scratch/x bs=1M count=8; sleep 1000"
    told("evicted-disk", {"command": [*SH, fills], "volumeMounts": mounts}, volumes=volumes)


def test_a_pod_whose_time_is_over(told: Callable[..., None]) -> None:
    told("deadline", {}, activeDeadlineSeconds=3)


def test_more_than_the_node_has(told: Callable[..., None]) -> None:
    told("no-room", {"resources": {"requests": {"cpu": "900"}}}, nodeName=kubelet.NODE)


def test_a_pod_that_is_well_has_nothing_wrong(node: Lab, tmp_path: Path) -> None:
    body = pod("wells", {"command": [*SH, "exit 0"]})
    node.client.apply(body)
    name = body["metadata"]["name"]
    poll(lambda: node.client.get("Pod", name, TEAM)["status"]["phase"] == "Succeeded", PATIENCE, lambda: name)
    ended = trimmed({"apiVersion": "v1", "kind": "Pod", **node.client.get("Pod", name, TEAM)})
    (verdict,) = judged(save(tmp_path, Sample("", "", "", "", "", [ended])))
    assert verdict.is_well
