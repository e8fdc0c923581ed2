"""The real MPICH reads what the script writes: a hostfile of Hydra's, and every rank runs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests import workspaces
from tests.launch.scripts import Pod, container

MPIEXEC = Path(sys.executable).with_name("mpiexec.hydra")
pytestmark = pytest.mark.skipif(not MPIEXEC.is_file(), reason="no MPICH next to this python")

# Addresses of this machine that stand for hosts.
HOSTS = ["127.0.0.2", "127.0.0.3", "127.0.0.4"]
# ssh [options] HOST COMMAND: the host goes into the log, the command runs here.
_SSH = """\
#!/bin/sh
while [ "${1#-}" != "$1" ]; do
  case "$1" in -o|-p) shift ;; esac
  shift
done
echo "$1" >>"$LOG"
GANGPLAN_HOST=$1
export GANGPLAN_HOST
shift
exec sh -c "$*"
"""
SPEC = workspaces.SPEC.replace("image: openmpi", "image: mpich").replace("workers: 4", "workers: 3")


def hydra(folder: Path) -> tuple[Pod, list[str], dict[str, str]]:
    """A pod whose mpirun is the real one, the final command, and its environment."""
    found = container(SPEC, folder=folder)
    env = found.env
    pod = Pod.of(folder, "/bin/sh", found)
    pod.hosts(HOSTS)
    (folder / "bin/getent").write_text("#!/bin/sh\nexit 0\n")
    (folder / "bin/uname").write_text('#!/bin/sh\necho "$GANGPLAN_HOST"\n')
    (folder / "bin/uname").chmod(0o755)
    (folder / "bin/python").write_text('#!/bin/sh\necho "rank $PMI_RANK of $PMI_SIZE on $GANGPLAN_HOST"\n')
    (folder / "bin/python").chmod(0o755)
    (folder / "bin/ssh").write_text(_SSH)
    (folder / "bin/ssh").chmod(0o755)
    (folder / "bin/mpirun").write_text(f'#!/bin/sh\nexec "{MPIEXEC}" "$@"\n')
    env["HYDRA_HOST_FILE"] = env["HYDRA_HOST_FILE"].replace("/tmp/gangplan-", f"{folder}/gangplan-")
    env["HYDRA_LAUNCHER_EXEC"] = str(folder / "bin/ssh")
    env["HYDRA_IFACE"] = "lo"  # eth0 is the name inside pods
    return pod, found.args, env


def test_every_rank_runs_where_it_should(tmp_path: Path) -> None:
    pod, argv, env = hydra(tmp_path)
    pod.env = env
    done = pod.start(*argv)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert sorted(line.split(" on ")[0] for line in lines) == [f"rank {rank} of 6" for rank in range(6)]
    assert Counter(line.split(" on ")[1] for line in lines) == dict.fromkeys(HOSTS, 2)
    assert set(pod.log) == set(HOSTS)


def test_a_trainer_hostfile_alone_would_not_do(tmp_path: Path) -> None:
    """Why the script translates: Hydra takes `slots=2` for nothing it knows, or for one rank a host."""
    _, argv, env = hydra(tmp_path)
    env["HYDRA_HOST_FILE"] = str(tmp_path / "hostfile")
    done = subprocess.run(
        [str(tmp_path / "bin/mpirun"), "-n", "6", *argv[argv.index("-ppn") + 2 :]],
        env={"PATH": f"{tmp_path}/bin:{os.defpath}", "LOG": str(tmp_path / "log"), **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    hosts = [line.split(" on ")[1] for line in done.stdout.splitlines()]
    assert done.returncode != 0 or hosts != sorted(hosts), done.stdout
