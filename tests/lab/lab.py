"""One running control plane."""

from __future__ import annotations

import atexit
import http.client
import json
import ssl
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from . import (
    addons,
    build,
    client,
    controllers,
    install,
    logs,
    nodes,
    plane,
    probes,
    profiles,
    programs,
    stages,
)
from . import stories as told
from .client import Client, Object
from .controllers import Manager
from .folders import RunFolder
from .ports import Ports
from .processes import Processes
from .profiles import Profile
from .site import Site
from .stages import Story

START_TIMEOUT = 1.5 * client.PATIENCE


class Lab:
    """A control plane at the versions of a profile, on loopback, for one test run.

    ``settings`` are merged into the controllers' upstream configurations, such as ``{"kueue":
    {"waitForPodsReady": {"timeout": "10s"}}}``. ``nodes`` are plain descriptions (see `nodes.node`).
    ``gates`` are Kubernetes'. Use it in a ``with`` statement.
    """

    def __init__(
        self,
        profile: Profile | str = profiles.DEFAULT,
        *,
        nodes: Iterable[Mapping[str, Any]] = nodes.DEFAULT,
        settings: Mapping[str, Mapping[str, Any]] | None = None,
        gates: Iterable[str] = (),
        report: build.Say = build.say,
    ) -> None:
        """Store the choices; nothing starts yet."""
        self.profile = profiles.find(profile) if isinstance(profile, str) else profile
        self.timings: dict[str, float] = {}
        self._nodes = tuple(nodes)
        self._settings = dict(settings or {})
        self._gates = tuple(gates)
        self._report = report
        self._undo: list[Callable[[], None]] = []
        self._commands: dict[str, tuple[list[str], Mapping[str, str]]] = {}
        self._marks: dict[str, int] = {}

    # --- life --------------------------------------------------------------

    def __enter__(self) -> Self:
        """Start everything and wait until it answers."""
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End everything; after a failure, show the errors in the programs' logs."""
        if isinstance(error, Exception):
            self._report(self.problems())
        self.stop()

    def start(self) -> Self:
        """Build what is missing, start everything, and wait until it answers."""
        build.ensure(self.profile.programs, self._report)
        atexit.register(self.stop)
        self._undo.append(lambda: atexit.unregister(self.stop))
        began = time.monotonic()
        try:
            self._boot_patiently()
        except BaseException:
            self.stop()
            raise
        self.timings["ready"] = time.monotonic() - began
        return self

    def stop(self) -> None:
        """End every program, and release ports and folder; the logs stay."""
        while self._undo:
            self._undo.pop()()

    def _boot_patiently(self) -> None:
        """Repeat a start that failed once: all tests of a run depend on it."""
        try:
            self._boot()
        except Exception as error:  # noqa: BLE001  # whatever it was, the second time it is raised
            self._tell_why(error)
            while len(self._undo) > 1:  # all but what `start` registered
                self._undo.pop()()
            try:
                self._boot()
            except Exception as again:
                self._tell_why(again)
                raise

    def _tell_why(self, error: Exception) -> None:
        self._report(f"the lab did not start: {error}")
        if hasattr(self, "processes"):
            self._report(self.problems())

    def _boot(self) -> None:
        self.folder = RunFolder(self.profile.name)
        self._undo.append(self.folder.close)
        ports = Ports()
        self._undo.append(ports.close)
        self.site = Site(self.profile, self.folder.path, ports, self._gates)
        self.processes = Processes(self.folder.logs)
        self._undo.append(self.processes.close)
        with self._timed("api server"):
            self._start_api_server()
        managers = self._prepare_managers()
        with self._timed("custom resources"):
            self._install(managers)
        with self._timed("controllers"):
            self._start_controllers(managers)
            install.create(self.client, [*self._kwok("Stage"), *stages.usual()])
            self.add_nodes(self._nodes)
            self._await_webhooks(managers)

    def _start_api_server(self) -> None:
        self.run("etcd", plane.etcd(self.site))
        self.run("kube-apiserver", plane.api_server(self.site))
        self._until(self.site.identity.certificate.exists, "the API server has a certificate")
        self._until(self._api_answers, "the API server answers")
        self.site.write_kubeconfig()
        self.client = Client(self.url, self.token, self.site.identity.trust())

    def _prepare_managers(self) -> list[Manager]:
        settings = self._settings
        return [controllers.manager(self.site, name, settings.get(name, {})) for name in controllers.MANAGERS]

    def _install(self, managers: list[Manager]) -> None:
        """Create namespaces, kinds and webhooks of all controllers."""
        bundle = self.site.identity.bundle()
        objects = [
            install.local(item, each.webhook_port, bundle) for each in managers for item in each.manifests
        ]
        definitions = [*install.kinds(objects, install.CRD), *self._kwok(install.CRD), *addons.definitions()]
        if self.profile.mpi_operator:
            definitions += self._manifests("mpi-operator", install.CRD)
        others = install.kinds(objects, "Namespace", *install.WEBHOOKS)
        install.create(self.client, [*definitions, *others])
        # The controller manager gives up if the API server isn't completely healthy soon.
        self._until(self._api_is_healthy, "the API server is healthy")
        self.run("kube-controller-manager", plane.controller_manager(self.site))
        self.run("kube-scheduler", plane.scheduler(self.site))
        self._until(lambda: install.served(self.client, definitions), "all kinds are served")

    def _kwok(self, kind: str) -> list[Object]:
        """Return KWOK's own objects of a kind."""
        return self._manifests("kwok", kind)

    def _manifests(self, name: str, kind: str) -> list[Object]:
        """Return the objects of a kind among a program's manifests."""
        text = (build.home(self.profile.program(name)) / "manifests.json").read_text()
        return install.kinds(json.loads(text), kind)

    def _start_controllers(self, managers: list[Manager]) -> None:
        for one in managers:
            self.run(one.name, one.command, one.environment)
        self.run("kwok", controllers.kwok(self.site, self.site.ports.take()))
        if self.profile.mpi_operator:
            health = self.site.ports.take()
            self.run("mpi-operator", controllers.mpi_operator(self.site, health))
            self._until(partial(_healthy, health), "the MPI operator is ready")

    def _await_webhooks(self, managers: list[Manager]) -> None:
        for each in managers:
            self._until(partial(_healthy, each.health_port), f"{each.name} is ready")
            self._until(partial(probes.answers, self.client, each.name), f"{each.name}'s webhooks answer")

    def run(self, name: str, command: list[str], environment: Mapping[str, str] | None = None) -> None:
        """Start one more program that ends with the lab."""
        self._commands[name] = (command, environment or {})
        self.processes.start(name, command, environment or {})

    def _until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait for a step of the start; give up as soon as a program has ended."""

        def step() -> bool:
            self.processes.check()
            return holds()

        client.poll(step, START_TIMEOUT, lambda: f"waited in vain until {what}", every=0.05)

    def _api_answers(self) -> bool:
        with suppress(OSError, http.client.HTTPException, client.ApiError, ssl.SSLError):
            answer = Client(self.url, self.token, self.site.identity.trust()).request(
                "GET", f"/apis/{install.CRD_GROUP}/customresourcedefinitions"
            )
            return answer.object is not None
        return False

    def _api_is_healthy(self) -> bool:
        try:
            return self.client.request("GET", "/healthz").object is not None
        except client.ApiError:
            return False

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.timings[name] = time.monotonic() - began

    # --- what tests use ----------------------------------------------------

    @property
    def url(self) -> str:
        """The address of the API server."""
        return self.site.url

    @property
    def token(self) -> str:
        """The administrator's bearer token."""
        return self.site.token

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.site.kubeconfig

    def kubectl(self, *arguments: str, text: str | None = None) -> str:
        """Run kubectl (of the profile's version) as the administrator; return what it prints."""
        command = [str(self.site.executable("kubernetes", "kubectl")), *arguments]
        command += [f"--kubeconfig={self.kubeconfig}"]
        result = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        if result.returncode:
            raise RuntimeError(f"kubectl {' '.join(arguments)}: {result.stderr.strip()}")
        return result.stdout

    def logs(self, name: str) -> str:
        """Return the whole log of a program."""
        return self.processes[name].log.read_text(errors="replace")

    def mark(self) -> None:
        """Let `problems` leave out what the programs have logged so far."""
        self._marks = {process.name: process.log.stat().st_size for process in self.processes}

    def problems(self) -> str:
        """Return the relevant lines of every program's log since the last mark."""
        marks = self._marks
        said = [logs.relevant(each.log, start=marks.get(each.name, 0)) for each in self.processes]
        dead = [f"ended by themselves: {', '.join(ended)}"] if (ended := self.processes.ended()) else []
        return "\n".join(
            [*dead, "what the programs complained of:", *filter(None, said), f"logs: {self.folder.logs}"]
        )

    def add_nodes(self, descriptions: Iterable[Mapping[str, Any]]) -> list[str]:
        """Add simulated nodes; return their names when all are ready."""
        names = nodes.create(self.client, descriptions)
        self._until(lambda: nodes.usable(self.client, names), "all nodes are ready")
        return names

    def add_training_operator(self) -> None:
        """Start the training operator, which no profile has, with its kinds except MPIJob."""
        text = (build.home(programs.TRAINING_OPERATOR) / "manifests.json").read_text()
        definitions = install.kinds(json.loads(text), install.CRD)
        install.create(self.client, definitions)
        self._until(lambda: install.served(self.client, definitions), "all kinds are served")
        health = self.site.ports.take()
        self.run("training-operator", controllers.training_operator(self.site, health))
        self._until(partial(_healthy, health), "the training operator is ready")

    def tell(self, *stories: Story, instead_of: Iterable[Story] = ()) -> None:
        """Decide what happens to some pods from now on, in place of `instead_of`."""
        told.tell(self.client, stories, instead_of)

    def forget(self, *stories: Story) -> None:
        """Let the usual course happen again."""
        told.forget(self.client, stories)

    def halt(self, name: str) -> None:
        """Stop one program, such as ``trainer``, to see what happens without it."""
        self.processes.stop(name)

    def resume(self, name: str) -> None:
        """Restart a program that was halted."""
        begin = (self.folder.logs / f"{name}.log").stat().st_size
        self.run(name, *self._commands[name])
        if name == "kwok":
            self._until(partial(self._kwok_knows_its_stages, begin), "kwok plays pods and nodes")

    def _kwok_knows_its_stages(self, begin: int) -> bool:
        """Return whether kwok plays both kinds; else touch a Stage, for the next time.

        KWOK 0.7.0 keeps the stages that it has by the resource version of their list, also while it still
        fills that list (pkg/config/resources, dynamic.go and cache.go): it may go on without those of nodes
        until one changes.
        """
        said = self.logs("kwok").encode()[begin:].decode(errors="replace")
        started = [line for line in said.splitlines() if "Start stage controller" in line]
        if all(any(f'"Kind":"{kind}"' in line for line in started) for kind in ("Pod", "Node")):
            return True
        (stage, *_) = self.client.list("Stage")
        touched = {"metadata": {"annotations": {"touched": str(time.monotonic())}}}
        self.client.patch("Stage", stage["metadata"]["name"], touched)
        return False


def _healthy(port: int) -> bool:
    """Return whether a controller manager reports that it is ready."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


__all__ = ["Lab", "Object"]
