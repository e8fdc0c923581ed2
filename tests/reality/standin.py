"""Hosts for users who may not create namespaces: processes that take themselves for hosts.

A preloaded library (standin.c) decides a process's host and which hosts it may reach, and a stand-in for ssh
(standin_ssh.py) leads from one to the other. A container's own files are in a folder for each host, and the
paths to them are changed in commands, scripts and variables of the pods; nothing else that was rendered is
changed.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from gangplan.generators.scripts import SCRIPTS_FOLDER
from tests.launch.scripts import written
from tests.reality import pods
from tests.reality.families import UnavailableError, installed
from tests.reality.hosts import Host
from tests.reality.running import SSH_PORT, START_TIMEOUT_S, Image, Run, keys

SOURCE = Path(__file__).with_name("standin.c")
SSH = Path(__file__).with_name("standin_ssh.py")
#: The soft limit of message queues that marks host 0 (standin.c).
BASE = 700_000
#: The paths of a container that each host has separately, and their names in the host's folder.
PLACES = {
    "/etc/mpi": "etc/mpi",
    pods.HOME: "home",
    "/tmp/gangplan": "tmp/gangplan",
    "/dev/shm/gangplan": "shm/gangplan",
    "/opt/intel/oneapi": "opt/intel",
    SCRIPTS_FOLDER: "opt/launch",
    "/usr/sbin/sshd": "bin/sshd",
}
SSHD = '#!/bin/sh\n[ "$1" = -De ] && [ -r "$3" ] || exit 1\n: >"{root}/listens"\nexec sleep 3600\n'


__all__ = ["BASE", "SSH", "SSH_PORT", "check", "started"]


@cache
def check() -> None:
    """Raise UnavailableError with the reason where not even stand-ins can run."""
    if sys.platform != "linux":
        raise UnavailableError("stand-ins for hosts are for Linux")
    if shutil.which("cc") is None:
        raise UnavailableError("stand-ins for hosts need a C compiler")
    if resource.getrlimit(resource.RLIMIT_MSGQUEUE)[1] < BASE + 64:
        raise UnavailableError("stand-ins for hosts need the usual limit of message queues")


@contextmanager
def started(folder: Path, cluster: pods.Cluster, image: Image) -> Iterator[Run]:
    """Start the pods of a run as stand-ins: the workers first, and the launcher when they listen."""
    check()
    library, table = folder / "standin.so", folder / "hosts" / "table"
    build = ["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE), "-ldl"]
    subprocess.run(build, check=True, timeout=60)
    reports = folder / "reports"
    reports.mkdir()
    table.parent.mkdir()
    table.write_text(_table(cluster))
    base = {"LD_PRELOAD": str(library), "GANGPLAN_STANDIN": str(table)}
    if os.geteuid() == 0:  # Open MPI's mpirun refuses to run as root; a pod never does
        base |= {
            name: "1"
            for tool in ("OMPI", "PRTE")
            for name in (f"{tool}_ALLOW_RUN_AS_ROOT", f"{tool}_ALLOW_RUN_AS_ROOT_CONFIRM")
        }
    programs = installed(image.family.name) / "usr/local/bin"
    hosts: dict[str, Host] = {}
    try:
        for pod in [*cluster.workers, cluster.launcher]:
            if pod is cluster.launcher:
                _wait([hosts[worker.name] for worker in cluster.workers])
            root = _root(table.parent / pod.name, cluster, pod, image, reports)
            path = f"{root / 'bin'}:{programs}:/usr/bin:/bin"
            # What sshd gives to a login (OpenSSH 9.2, session.c do_setup_env), and what makes the process a
            # stand-in.
            login = {
                "USER": "mpiuser",
                "LOGNAME": "mpiuser",
                "HOME": str(root / "home"),
                "SHELL": "/bin/bash",
            }
            login |= {"PATH": path, **base}
            (root / "login").write_text("".join(f"{name}={value}\n" for name, value in login.items()))
            hosts[pod.name] = _start(cluster, pod, root, {"PATH": path, "HOSTNAME": pod.name, **base})
        yield Run(
            cluster, hosts[cluster.launcher.name], [hosts[pod.name] for pod in cluster.workers], reports
        )
    finally:
        _end(str(table))
        for host in hosts.values():
            host.process.wait(10)


def _table(cluster: pods.Cluster) -> str:
    """Return the table of hosts, their names, and the allowed connections."""
    lines = [f"host {pod.name} {pod.address}" for pod in cluster.pods]
    lines += [f"name {name} {number}" for number, pod in enumerate(cluster.pods) for name in pod.names]
    if cluster.policies:
        lines.append("filtered")
        lines += [
            f"allow {one} {two} {low} {high}"
            for one, source in enumerate(cluster.pods)
            for two, target in enumerate(cluster.pods)
            if source is not target
            for low, high in pods.open_ports(cluster, source, target)
        ]
    return "".join(f"{line}\n" for line in lines)


def _root(root: Path, cluster: pods.Cluster, pod: pods.Pod, image: Image, reports: Path) -> Path:
    """Create the folder of one host with the files of the pod's container."""
    moved = _moving(root)
    files = {path: text for path, text in image.files().items() if path.startswith((pods.HOME, "/opt/intel"))}
    files |= {f"{cluster.keys}/{name}": text for name, text in keys().items()}
    if pod.role == "launcher":
        files["/etc/mpi/hostfile"] = cluster.hostfile
    for path, text in files.items():
        target = Path(moved(path))
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    programs = {
        f"bin/{name}": text.replace("/reports", str(reports)) for name, text in image.programs.items()
    }
    programs["bin/sshd"] = SSHD.format(root=root)
    programs["bin/ssh"] = f'#!/bin/sh\nexec "{sys.executable}" -I "$0.py" "$@"\n'
    programs["bin/ssh.py"] = SSH.read_text()
    for name in (*programs, "tmp/x", "shm/x"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
    for name, text in programs.items():
        (root / name).write_text(text)
        (root / name).chmod(0o755)
    return root


def _moving(root: Path) -> Callable[[str], str]:
    """Return a function that changes the paths of a container to those in its host's folder."""
    pattern = re.compile("|".join(re.escape(place) for place in PLACES))
    return lambda text: pattern.sub(lambda found: f"{root}/{PLACES[found.group()]}", text)


def _start(cluster: pods.Cluster, pod: pods.Pod, root: Path, base: Mapping[str, str]) -> Host:
    moved = _moving(root)
    words = [moved(word) for word in pod.command]
    # The digest of the scripts, whose paths are changed, too.
    stated = written(pod.scripts, Path(moved(SCRIPTS_FOLDER)), moved)
    words[2] = re.sub(r"\b[0-9a-f]{64}\b", stated, words[2])
    env = {name: moved(value) for name, value in pod.container["env"].items()}
    number = cluster.pods.index(pod)
    limit = (BASE + number, resource.getrlimit(resource.RLIMIT_MSGQUEUE)[1])
    with (root / "out").open("wb") as out, (root / "err").open("wb") as err:
        process = subprocess.Popen(
            words,
            env={"HOME": str(root / "home"), **env, **base},
            cwd=root / "home",
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_MSGQUEUE, limit),
        )
    return Host(pod.name, pod.address, root, process, process.pid)


def _wait(workers: list[Host]) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    for worker in workers:
        while not (worker.folder / "listens").exists():
            if not worker.is_running or time.monotonic() > deadline:
                raise AssertionError(f"worker {worker.name} is not ready: {worker.out}{worker.err}")
            time.sleep(0.01)


def _end(table: str) -> None:
    """End every process with this table in its environment: those of this run, and no other."""
    mark = f"GANGPLAN_STANDIN={table}".encode()
    for _ in range(50):
        found = []
        for place in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                state = (place / "stat").read_text().rpartition(")")[2].split()[0]
                if state not in "ZX" and mark in (place / "environ").read_bytes().split(b"\0"):
                    found.append(int(place.name))
        if not found:
            return
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
