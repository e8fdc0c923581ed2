"""What real MPIs and OpenSSH print on failures, and the cause that gangplan diagnose finds.

`--update` records it into tests/diagnose/recorded/mpi.yaml.
"""

from __future__ import annotations

import io
import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gangplan.diagnose.read import read_evidence
from gangplan.diagnose.verdict import RunDiagnosis, diagnose_runs
from tests.diagnose.samples import Sample, keep, neutral
from tests.reality import pods, running
from tests.reality.base import ALL, running_spec, spec
from tests.reality.families import FAMILIES, WHEELS, Family
from tests.reality.hosts import Host

TIMEOUT_S = 60.0
ENV = {"PATH": running.PATH, "HOME": pods.HOME}
# A worker, and a key that it accepts; ssh without the image's own configuration.
NAMES = """\
WORKER=$(grep -o '[^ ]*node-0-0[^ ]*' /etc/hosts | head -1)
KEYS=$HOME/.ssh
BARE="ssh -F none -o BatchMode=yes -o IdentitiesOnly=yes -o StrictHostKeyChecking=no -p 2222"
"""
# Rank 1 ends as its first argument says.
ENDS = """\
#!/bin/sh
rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}
if [ "$rank" = 1 ]; then
  case $1 in
    code) echo "rank 1 gives up" >&2; exit 17 ;;
    *) kill -"$1" $$ ;;
  esac
fi
sleep 20
"""


@pytest.fixture(params=ALL, scope="module")
def hosts(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Family, Host]]:
    """Start a launcher and two workers that wait, for each MPI."""
    family = FAMILIES[request.param]
    folder = tmp_path_factory.mktemp(family.name)
    with running_spec(folder, family, spec(family, 2, "slots: 1"), program=running.SAVER) as run:
        deadline = time.monotonic() + TIMEOUT_S
        while run.launcher.run(["true"], ENV, 5)[0] and time.monotonic() < deadline:
            time.sleep(0.1)
        yield family, run.launcher


def told(folder: Path, text: str) -> RunDiagnosis:
    """Return the verdict on a launcher's log."""
    (folder / "launcher.log").write_text(text)
    (verdict,) = diagnose_runs(read_evidence([str(folder)], lambda: io.BytesIO(b"")))
    return verdict


def ended(code: int) -> dict[str, object]:
    """Return the status of a container that ended with a code."""
    return {"name": "node", "state": {"terminated": {"exitCode": code, "reason": "Error"}}}


def first(folder: Path, text: str) -> str:
    """Return the first cause."""
    found = told(folder, text).found
    assert found, text
    return found[0].cause.id


def version(family: Family) -> str:
    """Return the MPI's version, by its wheel."""
    return next(
        line.split(" ")[0]
        for line in (WHEELS / f"{family.name}.txt").read_text().splitlines()
        if "==" in line
    )


@pytest.fixture
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str, str, str, str], None]:
    """Return a function that records what was printed, with --update."""

    def write(name: str, cause: str, by: str, said: str) -> None:
        if request.config.getoption("--update") and cause:
            keep(
                "mpi",
                Sample(
                    name, cause, by, "tests/reality/test_diagnose.py", neutral(said, {tmp_path: "/scratch"})
                ),
            )

    return write


def mpirun(family: Family, host: Host, *words: str) -> str:
    """Return what mpirun prints on the launcher."""
    _, said = host.run(["mpirun", *words], ENV, TIMEOUT_S)
    return said


# Hydra passes on the exit code of a program and prints nothing; Open MPI 5 does the same for a signal on a
# worker. The exit code of the pod shows it then. Open MPI 4 reports a shell that was ended by a signal as an
# exit code.
SAYS = {
    ("openmpi4", "code"): {"rank-failed"},
    ("openmpi4", "SEGV"): {"segmentation-fault", "rank-failed"},
    ("openmpi4", "KILL"): {"killed", "rank-failed"},
    ("openmpi5", "code"): {"rank-failed", ""},
    ("openmpi5", "SEGV"): {"segmentation-fault", ""},
    ("openmpi5", "KILL"): {"killed", ""},
    ("mpich", "code"): {""},
    ("mpich", "SEGV"): {"segmentation-fault"},
    ("mpich", "KILL"): {"killed"},
    ("intel", "code"): {""},
    ("intel", "SEGV"): {"segmentation-fault", ""},
    ("intel", "KILL"): {"killed"},
}


@pytest.mark.parametrize("how", ["code", "SEGV", "KILL"])
@pytest.mark.parametrize("name", ALL)
def test_the_end_of_a_rank_is_found(how: str, name: str, tmp_path: Path, kept: Callable[..., None]) -> None:
    family = FAMILIES[name]
    text = spec(family, 2, "slots: 1", command=f"[python, {how}]")
    with running_spec(tmp_path, family, text, program=ENDS) as run:
        code = run.end()
        said = run.launcher.out + run.launcher.err
    assert code != 0
    body = {
        "kind": "Pod",
        "metadata": {"name": "p"},
        "status": {"phase": "Failed", "containerStatuses": [ended(code)]},
    }
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved" / "pod.json").write_text(json.dumps({"apiVersion": "v1", **body}))
    verdict = told(tmp_path / "saved", said)
    found = [one.cause.id for one in verdict.found if one.seen[0].line]
    assert (found[0] if found else "") in SAYS[name, how], said
    kept(f"{name}, a rank that ends by {how}", found[0] if found else "", version(family), said)
    assert not verdict.is_well


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        (("-np", "64", "hostname"), "too-few-slots"),
        (("--no-such-option", "hostname"), "mpi-option"),
        (("-np", "1", "no-such-program"), "program-missing"),
        (("-np", "1", "/etc/passwd"), "program-not-executable"),
        (("--timeout", "2", "-np", "1", "sleep", "30"), "deadline"),
        (
            ("--bind-to", "core", "--oversubscribe", "--host", "localhost:64", "-np", "64", "hostname"),
            "mpi-binding",
        ),
    ],
)
def test_the_refusal_of_mpirun_is_found(
    words: tuple[str, ...],
    cause: str,
    hosts: tuple[Family, Host],
    tmp_path: Path,
    kept: Callable[..., None],
) -> None:
    family, host = hosts
    if cause == "too-few-slots" and family.is_hydra:
        pytest.skip("Hydra counts no slots: it starts more ranks than there are")
    if cause in ("deadline", "mpi-binding") and family.is_hydra:
        pytest.skip("an option of Open MPI")
    said = mpirun(family, host, *words)
    print(said)
    if re.fullmatch(r"(?:\[proxy[^\]]*\]\s*)*", said):  # Intel MPI now and then stops in the middle
        pytest.skip(f"the mpirun of {family.name} ended without a word")
    assert first(tmp_path, said) == cause
    kept(f"{family.name}, mpirun {' '.join(words)}", cause, version(family), said)


@pytest.mark.parametrize(
    ("command", "cause"),
    [
        ("ssh -p 2223 $WORKER true", "ssh-refused"),
        ("ssh no-such-worker true", "ssh-name"),
        ("ssh -F none -o StrictHostKeyChecking=yes -p 2222 $WORKER true", "ssh-host-key"),
        ("$BARE -i /dev/null $WORKER true", "ssh-denied"),
        (
            "cp $KEYS/id_rsa /tmp/key; chmod 644 /tmp/key; $BARE -i /tmp/key $WORKER true",
            "ssh-key-permissions",
        ),
        ("/usr/sbin/sshd -D -e -f /dev/null -p 2299", "sshd-broken"),
    ],
)
def test_the_failure_of_ssh_is_found(
    command: str, cause: str, hosts: tuple[Family, Host], tmp_path: Path, kept: Callable[..., None]
) -> None:
    family, host = hosts
    if family.name != "openmpi5":
        pytest.skip("one MPI is enough for SSH")
    _, said = host.run(["bash", "-c", f"{NAMES}{command}"], ENV, TIMEOUT_S)
    print(said)
    assert first(tmp_path, said) == cause
    _, by = host.run(["ssh", "-V"], ENV, TIMEOUT_S)
    kept(f"ssh: {cause}", cause, by.split(",")[0], said)
