"""Commands of sources that change their user first: a run has one user, and the rest is its command."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.imports.users import drop_user_change
from tests.imports.sources import MPIJOB, imported

# What a source starts; the command of the run, what was dropped, whether it was a login.
CHANGES = {
    ("runuser", "mpi", "-l", "-c", "mpirun ./x"): (("bash", "-c", "mpirun ./x"), "runuser", True),
    ("su", "-", "mpi", "-c", "mpirun ./x"): (("bash", "-c", "mpirun ./x"), "su", True),
    ("su", "mpi", "--command=mpirun ./x"): (("bash", "-c", "mpirun ./x"), "su", False),
    ("su", "-P", "mpi", "-c", "mpirun ./x"): (("bash", "-c", "mpirun ./x"), "su", False),
    ("su", "-c", "mpirun $1", "mpi", "./x"): (("bash", "-c", "mpirun $1", "bash", "./x"), "su", False),
    ("/sbin/runuser", "-u", "mpi", "--", "mpirun", "-n", "2"): (("mpirun", "-n", "2"), "/sbin/runuser -u mpi --", False),
    ("runuser", "--user=mpi", "mpirun", "-c"): (("mpirun", "-c"), "runuser --user=mpi", False),
    ("gosu", "mpi:mpi", "mpirun", "./x"): (("mpirun", "./x"), "gosu mpi:mpi", False),
    ("su-exec", "1000", "./x"): (("./x",), "su-exec 1000", False),
    ("sudo", "-E", "-u", "mpi", "mpirun"): (("mpirun",), "sudo -E -u mpi", False),
    ("sudo", "A=1", "./x"): (("env", "A=1", "./x"), "sudo", False),
    ("sudo", "-D", "/opt", "./x"): (("env", "-C", "/opt", "./x"), "sudo -D /opt", False),
    ("sudo", "--chdir=/opt", "A=1", "./x"): (("env", "-C", "/opt", "A=1", "./x"), "sudo --chdir=/opt", False),
    ("doas", "-u", "mpi", "mpirun"): (("mpirun",), "doas -u mpi", False),
    # Near misses: no command, or no change of user.
    ("su", "mpi"): (("su", "mpi"), "", False),
    ("sudo", "-u", "mpi"): (("sudo", "-u", "mpi"), "", False),
    ("sudo",): (("sudo",), "", False),
    ("mpirun", "-n", "2", "sudo", "./x"): (("mpirun", "-n", "2", "sudo", "./x"), "", False),
    (): ((), "", False),
}  # fmt: skip


@pytest.mark.parametrize("words", CHANGES, ids=" ".join)
def test_a_change_of_user_is_dropped(words: tuple[str, ...]) -> None:
    assert drop_user_change(words) == CHANGES[words]


@pytest.mark.parametrize(
    ("change", "is_login"),
    [
        ("su mpiuser -c 'SCRIPT'", False),
        ("runuser mpiuser -l -c 'SCRIPT'", True),
        ("sudo -E -u mpiuser SCRIPT", False),
    ],
)
def test_a_launch_as_another_user_is_that_of_the_run(change: str, is_login: bool, tmp_path: Path) -> None:
    start = MPIJOB[MPIJOB.index("            command: [mpirun") : MPIJOB.index("            env:")]
    words = change.replace("SCRIPT", "mpirun -np 8 -x NCCL_DEBUG=WARN /opt/heat/solve --steps 1000")
    listed = [words] if "'" not in words else [*words.split("'")[0].split(), words.split("'")[1]]
    source = MPIJOB.replace(start, f"            command: {listed if len(listed) > 1 else words.split()}\n")
    batch = imported(tmp_path, "mpijob", source)
    (one,) = batch.imported
    assert one.is_right, one.findings
    assert one.draft.values["command"] == ["/opt/heat/solve", "--steps", "1000"]
    (command,) = [each for each in one.runs["lab"].differences if each.area == "command"]
    assert command.why == "a run has one user, and its pods start as that one"
    home = [each.message for each in batch.everything if "starts in the home of its user" in each.message]
    assert len(home) == is_login
