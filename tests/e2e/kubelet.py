"""A real node for the lab: the kubelet of its Kubernetes, Debian's containerd and runc, in namespaces.

The kubelet registers one node. KWOK is halted, because it would simulate the pods of any node. Images come
from the CNCF distribution registry on loopback, or are imported. Pods share the machine's network: the lab
has no CNI plugin, and a configured but missing one shows what the kubelet says then. Folders of the machine
that a kubelet writes to (/run, /var/lib, /var/log) are empty ones of the namespace, and so are the three
kernel settings that it would change. Needs root and cgroups.
"""

from __future__ import annotations

import io
import json
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gangplan.oci.names import OCI_MANIFEST, compute_blob_digest
from tests.images import made
from tests.images.registry import Store
from tests.lab import build, programs
from tests.lab.client import condition, poll
from tests.lab.lab import Lab
from tests.reality import debian, hosts
from tests.reality.families import UnavailableError

NODE = "node-0"
LOCAL = "localhost/busybox:1"
PATIENCE = 120.0
#: containerd 1.6 and 1.7 read version 2.
CONTAINERD = """\
version = 2
root = "{folder}/c/root"
state = "{folder}/c/state"
[grpc]
address = "{folder}/c.sock"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "localhost/busybox:1"
disable_apparmor = true
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "native"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
BinaryName = "{runc}"
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{folder}/cni"
conf_dir = "{folder}/cni"
[plugins."io.containerd.grpc.v1.cri".registry]
config_path = ""
"""
SCRIPT = """\
set -e
for place in /run /var/lib /var/log; do mount -t tmpfs none $place; done
# What a kubelet would set on the whole machine, it finds set.
for setting in kernel/panic=10 kernel/panic_on_oops=1 vm/overcommit_memory=1; do
  echo "${{setting#*=}}" >"/run/${{setting##*/}}"
  mount --bind "/run/${{setting##*/}}" "/proc/sys/${{setting%=*}}"
done
export PATH={tree}/usr/bin:{tree}/usr/sbin:$PATH
containerd -c {folder}/containerd.toml >{folder}/containerd.log 2>&1 &
until ctr -a {folder}/c.sock version >/dev/null 2>&1; do sleep 0.2; done
ctr -a {folder}/c.sock -n k8s.io images import {folder}/busybox.tar
exec {kubelet} --kubeconfig={kubeconfig} --config={folder}/kubelet.json --hostname-override={node} \\
  --root-dir=/var/lib/kubelet --cert-dir=/var/lib/kubelet/pki
"""


def busybox() -> bytes:
    """Return a layer with Debian's static busybox as /bin/sh and more."""
    content = (debian.unpacked("busybox-static") / "usr/bin/busybox").read_bytes()
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for folder in ("bin", "tmp", "etc", "proc", "sys", "dev"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(entry)
        for name, data, mode in (("bin/busybox", content, 0o755), ("etc/motd", b"training\n", 0o644)):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), mode
            archive.addfile(entry, io.BytesIO(data))
        for name in ("sh", "sleep", "dd", "head", "mkdir", "tail", "cat"):
            entry = tarfile.TarInfo(f"bin/{name}")
            entry.type, entry.linkname = tarfile.SYMTYPE, "busybox"
            archive.addfile(entry)
    return out.getvalue()


def image(store: Store, architecture: str = "amd64") -> dict[str, object]:
    """Return the manifest of an image whose command waits; it is the pause container, too."""
    data = busybox()
    layer = store.blob(data) | {"mediaType": made.LAYER}
    body = {
        "architecture": architecture,
        "os": "linux",
        "config": {"Cmd": ["/bin/sleep", "1000000"], "Env": ["PATH=/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [compute_blob_digest(data)]},
    }
    described = store.blob(json.dumps(body).encode()) | {"mediaType": made.CONFIG}
    return {"schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": described, "layers": [layer]}


def settings(lab: Lab, folder: Path) -> dict[str, object]:
    """Return the kubelet's configuration."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "address": "127.0.0.1",
        "port": lab.site.ports.take(),
        "healthzPort": 0,
        "cgroupDriver": "cgroupfs",
        "cgroupsPerQOS": False,
        "enforceNodeAllocatable": [],
        "failSwapOn": False,
        "makeIPTablesUtilChains": False,
        "containerRuntimeEndpoint": f"unix://{folder}/c.sock",
        "featureGates": {"KubeletInUserNamespace": True},
        "resolvConf": "",
        "evictionHard": {"memory.available": "1Mi", "nodefs.available": "0%", "imagefs.available": "0%"},
        "syncFrequency": "2s",
        "nodeStatusUpdateFrequency": "2s",
    }


@contextmanager
def joined(lab: Lab, folder: Path) -> Iterator[str]:
    """Run a node of the lab during the block; skip the test, with the reason, where it cannot run."""
    try:
        hosts.check()
        tree = debian.unpacked("containerd", "runc")
        layer = busybox()
        build.ensure([programs.KUBELET])
    except (UnavailableError, build.GoMissingError) as reason:
        pytest.skip(str(reason))
    assert layer
    (folder / "cni").mkdir(parents=True)
    plugin = {"type": "gangplan-absent"}
    (folder / "cni/10-absent.conflist").write_text(
        json.dumps({"cniVersion": "1.0.0", "name": "pods", "plugins": [plugin]})
    )
    store = Store()
    layout = made.layout(folder / "layout", store, image(store), LOCAL)
    with tarfile.open(folder / "busybox.tar", "w") as archive:
        for path in sorted(layout.iterdir()):
            archive.add(path, path.name)
    (folder / "kubelet.json").write_text(json.dumps(settings(lab, folder)))
    places = {"folder": folder, "tree": tree, "runc": tree / "usr/sbin/runc", "node": NODE}
    (folder / "containerd.toml").write_text(CONTAINERD.format(**places))
    kubelet = build.executable(programs.KUBELET)
    (folder / "node.sh").write_text(SCRIPT.format(kubelet=kubelet, kubeconfig=lab.kubeconfig, **places))
    lab.halt("kwok")
    words = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--", "bash"]
    lab.run("kubelet", [str(shutil.which("unshare")), *words[1:], str(folder / "node.sh")])

    def is_ready() -> bool:
        lab.processes.check()
        node = lab.client.find("Node", NODE)
        return bool(node and condition(node, "Ready") == "True")

    poll(is_ready, PATIENCE, lambda: f"no node: {lab.logs('kubelet')[-3000:]}", every=0.5)
    try:
        yield NODE
    finally:
        lab.halt("kubelet")
        for controller in Path("/sys/fs/cgroup").iterdir():
            _remove(controller / "k8s.io")


def _remove(group: Path) -> None:
    """Remove the cgroups that containerd leaves when it is killed; they are empty by now."""
    if group.is_dir():
        for child in [*group.iterdir(), group]:
            if child.is_dir():
                child.rmdir()
