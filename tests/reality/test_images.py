"""The files of images/: real SSH servers and MPIs on hosts whose first process is the entry point of images.

The images are not built: what a Containerfile copies is put where it copies it, the MPI where it installs it.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.reality import debian, hosts
from tests.reality.families import UnavailableError, installed
from tests.reality.hosts import Fabric, Host
from tests.reality.running import SSH_PORT, keys
from tests.workspaces import REPOSITORY

IMAGES = REPOSITORY / "images"
# Folder of images/ -> the MPI that replaces its own, and where its Containerfile puts it.
MPIS = {
    "openmpi": ("openmpi5", "/opt/openmpi"),
    "openmpi4": ("openmpi4", "/opt/openmpi"),
    "mpich": ("mpich", "/opt/mpich"),
    "intel-mpi": ("intel", "/usr/local"),
}
START = "/usr/local/bin/mpi-start"
RANDOM = 1000660000  # as OpenShift takes users from the range of a namespace
WORKERS = ("w0", "w1")
ADDRESSES = {"launcher": "10.9.0.2", "w0": "10.9.0.3", "w1": "10.9.0.4"}
SAYS = '#!/bin/sh\necho "rank on $(uname -n) as $(id -u) $(id -un)"\n'
SAVES = """\
#!/bin/sh
trap 'echo saved >"/reports/$(uname -n).saved"; exit 0' TERM
echo up >"/reports/$(uname -n).up"
while :; do sleep 0.1; done
"""
RUNTIME_LINE = f"{RANDOM}:x:{RANDOM}:0:{RANDOM} user:/home/mpiuser:/sbin/nologin\n"  # CRI-O's own


def command_of(image: str) -> list[str]:
    """Return ENTRYPOINT and CMD of a Containerfile."""
    text = (IMAGES / image / "Containerfile").read_text()
    found = {
        name: json.loads(words) for name, words in re.findall(r"^(ENTRYPOINT|CMD) (\[.*\])$", text, re.M)
    }
    return [*found["ENTRYPOINT"], *found["CMD"]]


def files_of(image: str, is_random: bool) -> dict[str, str]:
    """Return the files that the Containerfile copies from its folder, by path, and those of packages."""
    folder = IMAGES / image
    copied = re.findall(
        r"^COPY (?:--ch\w+=\S+ )*([\w-]+) (/\S+)$", (folder / "Containerfile").read_text(), re.M
    )
    assert {source for source, _ in copied} == {"sshd_config", "ssh_config", "mpi-start"}
    passwd = "root:x:0:0::/root:/bin/bash\nsshd:x:101:65534::/run/sshd:/usr/sbin/nologin\n"
    passwd += "mpiuser:x:1000:1000::/home/mpiuser:/bin/bash\n" + (RUNTIME_LINE if is_random else "")
    return {
        "/etc/passwd": passwd,
        "/etc/group": "root:x:0:\nnogroup:x:65534:\nmpiuser:x:1000:\n",
        "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
        "/etc/ssh/ssh_config": "Include /etc/ssh/ssh_config.d/*.conf\n",
        "/etc/hosts": "".join(f"{address} {name}\n" for name, address in ADDRESSES.items()),
        "/home/mpiuser/.bashrc": "",
        "/usr/local/bin/says": SAYS,
        "/usr/local/bin/saves": SAVES,
        **{place: (folder / source).read_text() for source, place in copied},
        **{f"/home/mpiuser/.ssh/{name}": text for name, text in keys().items()},
    }


def mpirun(image: str, ranks: int, program: str) -> list[str]:
    """Return the words that start ranks on both workers."""
    family, prefix = MPIS[image]
    if family.startswith("openmpi"):
        words = [
            "--hostfile",
            "/etc/mpi/hostfile",
            "-np",
            str(ranks),
            "--map-by",
            "slot",
            "--bind-to",
            "none",
        ]
    else:
        words = ["-f", "/etc/mpi/hostfile", "-np", str(ranks), "-ppn", str(ranks // len(WORKERS))]
    return [f"{prefix}/bin/mpirun", *words, f"/usr/local/bin/{program}"]


@contextmanager
def run(
    folder: Path,
    image: str,
    launcher: Sequence[str],
    *,
    is_random: bool = False,
    is_fixed: bool = False,
    slots: int = 2,
    env: Mapping[str, str] | None = None,
) -> Iterator[tuple[Host, list[Host], Path]]:
    """Yield two workers that serve and a launcher; `is_fixed` makes their root file systems read-only."""
    family, prefix = MPIS[image]
    try:
        hosts.check()
        layers, binds = dict(debian.layers()), {}
        tree = installed(family) / "usr/local"
    except UnavailableError as reason:
        pytest.skip(str(reason))
    if prefix == "/usr/local":
        layers["/usr/local"] = tree
    else:
        binds[prefix] = tree
    reports = folder / "reports"
    reports.mkdir()
    reports.chmod(0o777)
    sign = ":" if family in ("mpich", "intel") else " slots="
    hostfile = "".join(f"{name}{sign}{slots}\n" for name in WORKERS)
    files = {**files_of(image, is_random), "/etc/mpi/hostfile": hostfile}
    modes = dict.fromkeys((START, "/usr/local/bin/says", "/usr/local/bin/saves"), 0o755)
    modes |= {"/home/mpiuser/.ssh/id_rsa": 0o640, "/etc/passwd": 0o664}
    path = f"{prefix}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    own = {"PATH": path, "HOME": "/home/mpiuser", **(env or {})}
    (folder / "hosts").mkdir()
    with Fabric(folder / "hosts", layers) as fabric:
        made = {}
        for name, address in ADDRESSES.items():
            words = [START, *launcher] if name == "launcher" else command_of(image)
            made[name] = fabric.start(
                name, address, words, own, files, modes, binds={**binds, "/reports": reports}
            )
            if is_fixed:
                (made[name].folder / "read-only").write_text("")
        workers = [made[name] for name in WORKERS]
        fabric.plug(workers)
        for worker in workers:
            wait(lambda worker=worker: worker.listens(SSH_PORT) or not worker.is_running, worker)
        fabric.plug([made["launcher"]])
        yield made["launcher"], workers, reports


def wait(holds: Callable[[], bool], host: Host, seconds: float = 30) -> None:
    """Wait until something holds."""
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, f"{host.out}{host.err}"
        time.sleep(0.02)


@pytest.fixture
def random_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run containers as a user without a name and of group 0, to which the files of the image belong."""
    usual = hosts._become

    def become(env: Mapping[str, str], start_in: str = "") -> list[str]:
        changed = {f"--reuid={hosts.USER}": f"--reuid={RANDOM}", f"--regid={hosts.USER}": "--regid=0"}
        return [changed.get(word, word) for word in usual(env, start_in)]

    monkeypatch.setattr(hosts, "USER", 0)
    monkeypatch.setattr(hosts, "_become", become)


def check(launcher: Host, user: int) -> None:
    """Check that two ranks ran on each worker as this user, who has a name."""
    code = launcher.wait(60)
    assert code == 0, f"{code}: {launcher.out}{launcher.err}"
    said = sorted(line for line in launcher.out.splitlines() if line.startswith("rank on"))
    assert said == sorted([f"rank on {name} as {user} mpiuser" for name in WORKERS] * 2), launcher.out


@pytest.mark.parametrize("is_fixed", [False, True])
@pytest.mark.parametrize("image", MPIS)
def test_ranks_start_on_two_hosts(image: str, is_fixed: bool, tmp_path: Path) -> None:
    with run(tmp_path, image, mpirun(image, 4, "says"), is_fixed=is_fixed) as (launcher, _, _):
        check(launcher, 1000)


@pytest.mark.parametrize("image", MPIS)
def test_ranks_start_as_any_user_of_group_0(image: str, random_user: None, tmp_path: Path) -> None:
    with run(tmp_path, image, mpirun(image, 4, "says"), is_random=True) as (launcher, _, _):
        check(launcher, RANDOM)


def test_a_user_who_cannot_get_a_name_gets_an_error(random_user: None, tmp_path: Path) -> None:
    with run(tmp_path, "openmpi", ["true"], is_random=True, is_fixed=True) as (launcher, workers, _):
        for host in (launcher, *workers):
            assert host.wait(20) == 1
            assert f"user {RANDOM} is not in /etc/passwd, which cannot be written" in host.err


@pytest.mark.parametrize("image", MPIS)
def test_sigterm_of_a_worker_reaches_its_ranks(image: str, tmp_path: Path) -> None:
    with run(tmp_path, image, mpirun(image, 2, "saves"), slots=1) as (launcher, workers, reports):
        wait(lambda: all((reports / f"{name}.up").exists() for name in WORKERS), launcher, 60)
        workers[0].terminate()
        wait(lambda: (reports / "w0.saved").exists(), launcher)
        assert workers[0].wait(20) != 124


def test_the_exit_code_is_that_of_the_command(tmp_path: Path) -> None:
    with run(tmp_path, "openmpi", ["/bin/sh", "-c", "exit 7"]) as (launcher, _, _):
        assert launcher.wait(20) == 7


def test_the_servers_refuse_logins_without_the_key(tmp_path: Path) -> None:
    words = ["ssh", "-F", "/dev/null", "-p", str(SSH_PORT), "-o", "BatchMode=yes", "-i", "/dev/null"]
    words += ["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "w0", "true"]
    with run(tmp_path, "openmpi", words) as (launcher, _, _):
        assert launcher.wait(20) == 255
        assert "Permission denied (publickey)" in launcher.err


# What Trainer sets for the launcher (v2.3.0, plugins/mpi/mpi.go), and what gangplan adds.
TRAINER = {"OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile", "OMPI_MCA_orte_keep_fqdn_hostnames": "true"}
OURS = {**TRAINER, "PRTE_MCA_prte_default_hostfile": "/etc/mpi/hostfile"}
# Image, variables -> hosts of the ranks.
HOSTFILES = {
    "Open MPI 4": ("openmpi4", TRAINER, ["w0", "w1"]),
    "Open MPI 5, silently on one host": ("openmpi", TRAINER, ["launcher", "launcher"]),
    "Open MPI 5 with the variable of its own": ("openmpi", OURS, ["w0", "w1"]),
}


@pytest.mark.parametrize("name", HOSTFILES)
def test_open_mpi_5_reads_its_own_hostfile_variable(name: str, tmp_path: Path) -> None:
    """Without it all ranks start on mpirun's host, nothing fails, and every worker idles."""
    image, env, wanted = HOSTFILES[name]
    words = ["/opt/openmpi/bin/mpirun", "-np", "2", "/usr/local/bin/says"]
    with run(tmp_path, image, words, slots=1, env=env) as (launcher, _, _):
        assert launcher.wait(60) == 0, launcher.err
        assert sorted(re.findall(r"rank on (\S+)", launcher.out)) == wanted
