"""Argo CD in the lab: it syncs a Git repository of this machine into the lab's cluster."""

from __future__ import annotations

import base64
import json
import os
import secrets
import socket
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from . import build, client, install, programs
from .client import Object
from .lab import Lab

NAMESPACE = "argocd"
REFRESH = "argocd.argoproj.io/refresh"
#: Seconds between two reconciliations of an application; upstream's default is 120.
RECONCILIATION = 3


class ArgoCD:
    """Argo CD's controllers in addition to a lab; they end with it.

    Applications name their destination ``cluster``; their repositories are ``file://`` addresses (see
    `gitrepo.GitRepository`). ``settings`` are merged into the ConfigMap ``argocd-cm``. ``plugin`` is the text
    of a plugin.yaml, and ``tools`` are the folders of the programs that the plugin's image would have.
    """

    def __init__(
        self,
        lab: Lab,
        *,
        cluster: str = "lab",
        settings: Mapping[str, str] | None = None,
        plugin: str = "",
        tools: Sequence[Path] = (),
        timeout: float = 60,
    ) -> None:
        """Build what is missing, start, and wait until the controllers answer."""
        build.ensure([programs.ARGOCD, programs.KUSTOMIZE])
        self.lab = lab
        self.api = lab.client
        self._install(cluster, settings or {})
        ports = {name: lab.site.ports.take() for name in ("redis", "repo", "repo metrics", "metrics")}
        self._start(ports)
        if plugin:
            self._start_plugin(plugin, tools)
        for port in ports.values():
            client.poll(lambda port=port: _listens(port), timeout, lambda: "Argo CD does not answer")  # type: ignore[misc]

    def _install(self, cluster: str, settings: Mapping[str, str]) -> None:
        manifests = json.loads((build.home(programs.ARGOCD) / "manifests.json").read_text())
        definitions = install.kinds(manifests, install.CRD)
        install.create(self.api, definitions)
        client.poll(
            lambda: install.served(self.api, definitions), 30, lambda: "Argo CD's kinds are not served"
        )
        self.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        self.api.apply_all(self._objects(cluster, settings))

    def _objects(self, cluster: str, settings: Mapping[str, str]) -> Iterable[Object]:
        """Return Argo CD's own configuration."""
        yield _data("ConfigMap", "argocd-cm", dict(settings))
        yield _data("ConfigMap", "argocd-rbac-cm", {})
        yield _data("ConfigMap", "argocd-gpg-keys-cm", {})
        yield _data("Secret", "argocd-secret", {"server.secretkey": secrets.token_hex(32)})
        access = {
            "bearerToken": self.lab.token,
            "tlsClientConfig": {"caData": self.lab.site.identity.bundle()},
        }
        registered = {"name": cluster, "server": self.lab.url, "config": json.dumps(access)}
        yield _data("Secret", "cluster", registered, {"argocd.argoproj.io/secret-type": "cluster"})

    def _start(self, ports: Mapping[str, int]) -> None:
        """Start Redis, the repo server and the application controller."""
        folder = self.lab.site.folder / "argocd"
        folder.mkdir()
        # Upstream's image has this script next to Git; it is run for every revision, signed or not.
        verify = folder / "tools" / "git-verify-wrapper.sh"
        verify.parent.mkdir()
        verify.write_text("#!/bin/sh\nexit 0\n")
        verify.chmod(0o755)
        tools = f"{verify.parent}:{build.executable(programs.KUSTOMIZE).parent}"
        environment = {
            "TMPDIR": str(folder),
            "PATH": f"{tools}:{os.environ.get('PATH', os.defpath)}",
            "ARGOCD_ASK_PASS_SOCK": str(folder / "ask-pass.sock"),
            "ARGOCD_GPG_ENABLED": "false",
            "ARGOCD_CLUSTER_CACHE_RESYNC_DURATION": "0",
            **self._sockets(),
        }
        redis = f"127.0.0.1:{ports['redis']}"
        common = [f"--kubeconfig={self.lab.kubeconfig}", f"--namespace={NAMESPACE}"]
        commands = {
            "argocd-redis": [redis],
            "argocd-repo-server": [
                f"--redis={redis}",
                "--address=127.0.0.1",
                f"--port={ports['repo']}",
                "--metrics-address=127.0.0.1",
                f"--metrics-port={ports['repo metrics']}",
                "--disable-tls",
                "--client-ca-path=",
                "--revision-cache-expiration=1s",
            ],
            "argocd-application-controller": [
                *common,
                f"--redis={redis}",
                f"--repo-server=127.0.0.1:{ports['repo']}",
                "--repo-server-plaintext",
                f"--metrics-port={ports['metrics']}",
                f"--app-resync={RECONCILIATION}",
                "--app-resync-jitter=0",
            ],
        }
        self._names = tuple(commands)
        for name, options in commands.items():
            self.lab.run(name, [str(build.executable(programs.ARGOCD, name)), *options], environment)

    def _sockets(self) -> dict[str, str]:
        """Return the variable by which the repo server finds the plugin's socket."""
        folder = self.lab.site.folder / "plugins"
        folder.mkdir(exist_ok=True)
        return {"ARGOCD_PLUGINSOCKFILEPATH": str(folder)}

    def _start_plugin(self, text: str, tools: Sequence[Path]) -> None:
        """Start what the sidecar of a plugin starts."""
        folder = self.lab.site.folder / "plugin"
        (folder / "tmp").mkdir(parents=True)
        (folder / "plugin.yaml").write_text(text)
        environment = {
            "HOME": str(folder),
            "PATH": ":".join(map(str, (*tools, "/usr/bin", "/bin"))),
            "TMPDIR": str(folder / "tmp"),
            "ARGOCD_CMP_WORKDIR": str(folder / "tmp"),
            **self._sockets(),
        }
        server = build.executable(programs.ARGOCD, "argocd-cmp-server")
        self._names += ("argocd-cmp-server",)
        self.lab.run("argocd-cmp-server", [str(server), f"--config-dir-path={folder}"], environment)
        sockets = self.lab.site.folder / "plugins"
        client.poll(lambda: any(sockets.glob("*.sock")), 30, lambda: "the plugin does not answer")

    def stop(self) -> None:
        """End Argo CD; what it synced stays."""
        for name in self._names:
            self.lab.halt(name)

    # --- what tests use ----------------------------------------------------

    def get(self, name: str) -> Object:
        """Return an application."""
        return self.api.get("Application", name, NAMESPACE)

    def refresh(self, name: str, *, hard: bool = False) -> None:
        """Let Argo CD reconcile an application at once."""
        change = {"metadata": {"annotations": {REFRESH: "hard" if hard else "normal"}}}
        self.api.patch("Application", name, change, NAMESPACE)

    def sync(self, name: str, *, prune: bool = False, options: Iterable[str] = ()) -> None:
        """Start a sync, as a person would with a click."""
        operation = {
            "sync": {"prune": prune, "syncOptions": list(options)},
            "initiatedBy": {"username": "lab"},
        }
        self.api.patch("Application", name, {"operation": operation}, NAMESPACE)

    def wait(
        self,
        name: str,
        *,
        sync: str = "Synced",
        health: str | None = None,
        revision: str | None = None,
        timeout: float = 60,
    ) -> Object:
        """Wait for an application's sync status, and its health and revision if given; return it."""

        def reached(application: Object) -> bool:
            status = application.get("status", {})
            found = status.get("sync", {})
            fits = found.get("status") == sync and found.get("revision") == (
                revision or found.get("revision")
            )
            done = status.get("operationState", {}).get("phase") not in ("Running", "Terminating")
            return (
                fits
                and done
                and status.get("health", {}).get("status")
                == (health or status.get("health", {}).get("status"))
            )

        return self.api.wait("Application", name, NAMESPACE, until=reached, timeout=timeout)

    def differing(self, name: str) -> list[str]:
        """Return the objects of an application that differ from Git, as ``Kind namespace/name``."""
        resources = self.get(name).get("status", {}).get("resources") or ()
        return [_reference(each) for each in resources if each.get("status") != "Synced"]

    def reconciled(self, name: str) -> str:
        """Return when Argo CD last reconciled an application."""
        at: str = self.get(name).get("status", {}).get("reconciledAt", "")
        return at


def _data(kind: str, name: str, data: Mapping[str, str], labels: Mapping[str, str] | None = None) -> Object:
    """Return one of Argo CD's ConfigMaps or Secrets."""
    marked = {"app.kubernetes.io/part-of": "argocd", **(labels or {})}
    metadata = {"name": name, "namespace": NAMESPACE, "labels": marked}
    values = dict(data)
    if kind == "Secret":
        values = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "data": values}


def _reference(resource: Mapping[str, Any]) -> str:
    namespace = resource.get("namespace")
    return f"{resource['kind']} {namespace + '/' if namespace else ''}{resource['name']}"


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False
