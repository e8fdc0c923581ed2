"""A rendered run, started on hosts: what its launcher printed, how it ended, and which rank ran where."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from gangplan.generators.scripts import SCRIPTS_FOLDER
from tests.reality import debian, hosts, pods
from tests.reality.families import Family, folder, installed
from tests.reality.hosts import USER, Fabric, Host

REPOSITORY = Path(__file__).parents[2]
SSH_PORT = 2222
START_TIMEOUT_S = 60.0
#: sshd's default on Debian; users' images add theirs before it.
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#: What every rank does: it writes its number and place, once, into a file of its own.
PROGRAM = """\
#!/bin/sh
rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK} size=${OMPI_COMM_WORLD_SIZE:-$PMI_SIZE}
report=/reports/$(uname -n).$$
{ printf 'RANK=%s\\nSIZE=%s\\nARGS=%s\\n' "$rank" "$size" "$*"
  printf 'FOLDER=%s\\n' "$(pwd)"
  grep Cpus_allowed_list /proc/self/status | sed 's/.*:\\s*/CPUS=/'
  env | sed 's/^/env:/'; } >"$report.new"
mv "$report.new" "$report"
echo "rank $rank of $size on $(uname -n)"
sleep 0.2 # Open MPI 5 now and then hangs over programs that end at once; MPI programs do not
"""
#: A rank that needs five seconds to save its work, as for a checkpoint.
SAVER = """\
#!/bin/sh
rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}
save() { for step in 1 2 3 4 5; do echo "saved $step" >>"/reports/saved-$rank"; sleep 1; done; exit 0; }
trap save TERM
printf 'RANK=%s\\n' "$rank" >"/reports/$(uname -n).$$.new"
mv "/reports/$(uname -n).$$.new" "/reports/$(uname -n).$$"
while :; do sleep 0.1; done
"""


@dataclass(frozen=True)
class Rank:
    """What one rank wrote."""

    rank: int
    size: int
    host: str
    cpus: str
    args: str
    folder: str
    env: Mapping[str, str]


@dataclass
class Run:
    """A run whose launcher was started."""

    cluster: pods.Cluster
    launcher: Host
    workers: list[Host]
    reports: Path

    def ranks(self) -> list[Rank]:
        """Return the ranks that wrote their files, by number."""
        found = [
            _rank(path)
            for path in self.reports.iterdir()
            if path.name.startswith(self.cluster.pods[0].subdomain)
        ]
        return sorted((rank for rank in found if rank), key=lambda rank: rank.rank)

    def end(self, timeout_s: float = 120.0) -> int:
        """Wait for the launcher and return its exit code; 124 if it did not end."""
        return self.launcher.wait(timeout_s)

    def story(self) -> str:
        """Return everything that was printed, for failed tests to show."""
        parts = [f"launcher: {self.launcher.out}{self.launcher.err}"]
        parts += [f"{worker.name}: {worker.out}{worker.err}" for worker in self.workers]
        return "\n".join(part for part in parts if part.partition(": ")[2])

    def check(self) -> None:
        """Assert the promise: every planned rank ran once, on its planned host, and no other."""
        planned = len(self.cluster.ranked) * self.cluster.slots
        ranks = self.ranks()
        assert [rank.rank for rank in ranks] == list(range(planned)), self.story()
        assert {rank.size for rank in ranks} == {planned}, self.story()
        places = sorted(rank.host for rank in ranks)
        assert places == sorted(pod.name for pod in self.cluster.ranked for _ in range(self.cluster.slots))


def _rank(path: Path) -> Rank | None:
    if path.suffix == ".new":
        return None
    lines = path.read_text().splitlines()
    facts = dict(line.split("=", 1) for line in lines if not line.startswith("env:") and "=" in line)
    env = dict(line[4:].split("=", 1) for line in lines if line.startswith("env:") and "=" in line)
    host = path.name.rpartition(".")[0]
    size = int(facts.get("SIZE") or 0)
    what = [facts.get(name, "") for name in ("CPUS", "ARGS", "FOLDER")]
    return Rank(int(facts["RANK"] or -1), size, host, *what, env)


@dataclass(frozen=True)
class Image:
    """What the image of a run has in addition to the MPI."""

    family: Family | None  # None: torch
    programs: Mapping[str, str]  # by path; "python" for a name in /usr/local/bin
    prefix: str = "/usr/local"  # the MPI's folder; another one is outside sshd's PATH
    bashrc: str = ""
    binds: Mapping[str, Path] | None = None

    def path(self) -> str:
        """Return the PATH of the image."""
        return PATH if self.prefix == "/usr/local" else f"{self.prefix}/bin:{PATH}"

    def files(self) -> dict[str, str]:
        """Return the files of the image, except for the executables of its programs."""
        contract = REPOSITORY / "images/openmpi"
        users = [
            "root:x:0:0::/root:/bin/bash",
            "sshd:x:101:65534::/run/sshd:/usr/sbin/nologin",
            f"mpiuser:x:{USER}:{USER}::{pods.HOME}:/bin/bash",
        ]
        return {
            "/etc/passwd": "".join(f"{user}\n" for user in users),
            "/etc/group": f"root:x:0:\nnogroup:x:65534:\nmpiuser:x:{USER}:\n",
            "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
            "/etc/ssh/ssh_config": "Include /etc/ssh/ssh_config.d/*.conf\n",
            "/etc/ssh/ssh_config.d/mpi.conf": (contract / "ssh_config").read_text(),
            f"{pods.HOME}/.sshd_config": (contract / "sshd_config").read_text(),
            f"{pods.HOME}/.bashrc": self.bashrc,
            "/opt/intel/oneapi/setvars.sh": "echo setvars\n",
        }


@contextmanager
def started(folder: Path, cluster: pods.Cluster, image: Image) -> Iterator[Run]:
    """Start the pods of a run on hosts: first the workers, and the launcher when they are ready (dependsOn).

    The pods of an MPIJob start together.
    """
    hosts.check()
    layers, binds = dict(debian.layers()), dict(image.binds or {})
    if image.family and image.prefix == "/usr/local":
        layers["/usr/local"] = installed(image.family.name) / "usr/local"
    elif image.family:
        binds[image.prefix] = installed(image.family.name) / "usr/local"
    reports = folder / "reports"
    reports.mkdir()
    reports.chmod(0o777)
    with Fabric(folder / "hosts", layers) as fabric:
        (folder / "hosts").mkdir()
        placed = {
            pod.name: _place(fabric, pod, cluster, image, {**binds, "/reports": reports})
            for pod in cluster.pods
        }
        launcher = placed[cluster.launcher.name]
        workers = [placed[pod.name] for pod in cluster.workers]
        if cluster.starts_together:
            fabric.plug([launcher, *workers])
            yield Run(cluster, launcher, workers, reports)
            return
        fabric.plug(workers)
        if image.family:
            _wait(workers)
            fabric.plug([launcher])
        yield Run(cluster, launcher, workers, reports)


def _place(
    fabric: Fabric, pod: pods.Pod, cluster: pods.Cluster, image: Image, binds: Mapping[str, Path]
) -> Host:
    env = {"PATH": image.path(), "HOME": pods.HOME, "HOSTNAME": pod.name, **pod.container["env"]}
    files = image.files() | {"/etc/hosts": pods.hosts_file(cluster, pod), "/etc/hostname": f"{pod.name}\n"}
    files |= {f"{SCRIPTS_FOLDER}/{name}": text for name, text in pod.scripts.items()}
    if cluster.keys:
        files |= {f"{cluster.keys}/{name}": text for name, text in keys().items()}
    if pod.role == "launcher":
        files["/etc/mpi/hostfile"] = cluster.hostfile
    programs = {
        path if "/" in path else f"/usr/local/bin/{path}": text for path, text in image.programs.items()
    }
    start_in = pod.container.get("workingDir", pods.HOME)
    files[f"{start_in}/.made"] = ""  # as container runtimes create it
    networks = {
        f"net{number}": f"10.{200 + number}.0.{pod.address.rpartition('.')[2]}"
        for number in range(1, pod.networks + 1)
    }
    modes = dict.fromkeys(programs, 0o755) | {f"{cluster.keys}/id_rsa": 0o640}
    return fabric.start(
        *(pod.name, pod.address, pod.command, env, files | programs, modes, pods.filters(cluster, pod)),
        binds,
        networks,
        start_in,
    )


def _wait(workers: list[Host]) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    for worker in workers:
        while not worker.listens(SSH_PORT):
            if not worker.is_running or time.monotonic() > deadline:
                raise AssertionError(f"worker {worker.name} is not ready: {worker.out}{worker.err}")
            time.sleep(0.01)


@cache
def keys() -> dict[str, str]:
    """Return a key pair as Trainer creates it: EC P-521, PEM."""
    place = folder() / f"keys-{os.getpid()}"
    place.mkdir(parents=True, exist_ok=True)
    path = place / "id_rsa"
    path.unlink(missing_ok=True)
    words = ["ssh-keygen", "-q", "-t", "ecdsa", "-b", "521", "-m", "PEM", "-N", "", "-C", "", "-f", str(path)]
    subprocess.run(words, check=True, timeout=30, stdin=subprocess.DEVNULL)
    private, public = path.read_text(), path.with_suffix(".pub").read_text()
    for file in place.iterdir():
        file.unlink()
    place.rmdir()
    return {"id_rsa": private, "id_rsa.pub": public, "authorized_keys": public}
