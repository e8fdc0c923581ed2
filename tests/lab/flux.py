"""Flux in the lab: it applies a Git repository of this machine to the lab's cluster."""

from __future__ import annotations

import http.client
import json
from contextlib import suppress

from . import build, client, install, programs
from .client import Object, condition
from .lab import Lab

NAMESPACE = "flux-system"
#: Flux reconciles when this annotation gets another value (fluxcd/pkg, ReconcileRequestAnnotation).
REQUEST = "reconcile.fluxcd.io/requestedAt"


class Flux:
    """Flux's source-controller and kustomize-controller in addition to a lab; they end with it."""

    def __init__(self, lab: Lab, *, timeout: float = 60) -> None:
        """Build what is missing, start, and wait until the controllers answer."""
        build.ensure(programs.FLUX)
        self.lab = lab
        self.api = lab.client
        self._looks = 0
        self._install()
        self._start(timeout)

    def _install(self) -> None:
        definitions = [
            item
            for program in programs.FLUX
            for item in json.loads((build.home(program) / "manifests.json").read_text())
        ]
        install.create(self.api, definitions)
        client.poll(lambda: install.served(self.api, definitions), 30, lambda: "Flux's kinds are not served")
        self.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})

    def _start(self, timeout: float) -> None:
        folder = self.lab.site.folder / "flux"
        (folder / "artifacts").mkdir(parents=True)
        artifacts = f"127.0.0.1:{self.lab.site.ports.take()}"
        more = {
            "source-controller": [
                f"--storage-path={folder / 'artifacts'}",
                f"--storage-addr={artifacts}",
                f"--storage-adv-addr={artifacts}",
            ],
            "kustomize-controller": ["--requeue-dependency=1s"],
        }
        environment = {
            "KUBECONFIG": str(self.lab.kubeconfig),
            "RUNTIME_NAMESPACE": NAMESPACE,
            "TMPDIR": str(folder),
        }
        for program in programs.FLUX:
            health = self.lab.site.ports.take()
            options = [f"--health-addr=127.0.0.1:{health}", "--metrics-addr=0", *more[program.name]]
            self.lab.run(program.name, [str(build.executable(program)), *options], environment)
            client.poll(
                lambda port=health: _healthy(port),  # type: ignore[misc]
                timeout,
                lambda name=program.name: f"{name} does not answer",  # type: ignore[misc]
            )

    def stop(self) -> None:
        """End Flux; what it applied stays."""
        for program in programs.FLUX:
            self.lab.halt(program.name)

    # --- what tests use ----------------------------------------------------

    def get(self, name: str, kind: str = "Kustomization") -> Object:
        """Return a Kustomization, or a source."""
        return self.api.get(kind, name, NAMESPACE)

    def look(self, name: str, kind: str = "Kustomization") -> Object:
        """Let Flux reconcile an object at once, and wait until it has; return the object."""
        self._looks += 1
        word = str(self._looks)
        self.api.patch(kind, name, {"metadata": {"annotations": {REQUEST: word}}}, NAMESPACE)
        return self.api.wait(
            kind,
            name,
            NAMESPACE,
            until=lambda item: item.get("status", {}).get("lastHandledReconcileAt") == word,
            timeout=120,
        )

    def wait(self, name: str, revision: str, timeout: float = 90) -> Object:
        """Wait until a Kustomization is ready at a revision; return it."""

        def reached(item: Object) -> bool:
            applied = item.get("status", {}).get("lastAppliedRevision", "")
            return applied.endswith(revision) and condition(item, "Ready") == "True"

        return self.api.wait("Kustomization", name, NAMESPACE, until=reached, timeout=timeout)


def _healthy(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    with suppress(OSError, http.client.HTTPException):
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    return False
