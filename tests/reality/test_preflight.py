"""The preflight with real MPIs: a sound run continues, and each fault ends it with its own code and message.

Hosts are namespaces with an sshd; the launch script is the rendered one. A wrong sum, another build of an MPI
and a wrong clock are simulated in the program around the preflight; the other faults are real.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from gangplan.diagnose.evidence import Evidence, RunPart
from gangplan.diagnose.read import scan_received_log_for_signs
from gangplan.diagnose.verdict import diagnose_runs
from gangplan.model.exits import PREFLIGHT_EXITS
from tests import workspaces
from tests.reality import pods, running
from tests.reality.base import ALL, python
from tests.reality.base import spec as spec_of
from tests.reality.families import FAMILIES, Family, UnavailableError, installed

PROGRAM = workspaces.REPOSITORY / "images/preflight/preflight.py"
IN_IMAGE = "/usr/local/bin/gangplan-preflight"
# Faults of hardware, each only on rank 1, before the image's unchanged preflight continues.
FAULTS = {
    "allreduce": """
def add(one, other, datatype):
    import array
    left, right = memoryview(one).cast("d"), memoryview(other).cast("d")
    for index in range(len(right)):
        right[index] += left[index] + (MPI.COMM_WORLD.Get_rank() == 1 and index == len(right) - 1)
SUM = MPI.Op.Create(add, commute=True)
""",
    "versions": """
plain = library
def library():
    return plain() + (" of another build" if MPI.COMM_WORLD.Get_rank() == 1 else "")
""",
    "clock": """
import os
if MPI.COMM_WORLD.Get_rank() == 1:
    now = lambda: time.time() + 5.0
""",
}


def ended(
    name: str, plan: Mapping[str, object], fault: str = "", ranks: int = 4, **env: str
) -> tuple[int, str]:
    """Run only the preflight, under mpirun on this machine; return its exit code and output."""
    family = FAMILIES[name]
    try:
        prefix = installed(name) / "usr/local"
    except UnavailableError as error:
        pytest.skip(str(error))
    words = [] if family.is_hydra else ["--allow-run-as-root", "--oversubscribe"]
    own = {"PATH": f"{prefix}/bin:{os.environ['PATH']}", "I_MPI_ROOT": str(prefix), "HOME": "/tmp"}
    own |= {"MPI4PY_LIBMPI": str(prefix / "lib" / family.library), "LD_LIBRARY_PATH": str(prefix / "lib")}
    text = PROGRAM.read_text().replace(
        '\nif __name__ == "__main__":', f"\n{fault}\nif __name__ == '__main__':"
    )
    flags = [f"--{flag}" if value is True else f"--{flag}={value}" for flag, value in plan.items()]
    done = subprocess.run(
        [str(prefix / "bin/mpirun"), *words, "-n", str(ranks), sys.executable, "-c", text, *flags],
        env={**own, **env},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def cause_of(log: str) -> str:
    """Return the cause that `gangplan diagnose` finds in a log."""
    (verdict,) = diagnose_runs(Evidence((), (scan_received_log_for_signs("launcher.log", log, RunPart()),)))
    return verdict.roots[0].cause.id


@pytest.mark.parametrize("ranks", [2, 8])
@pytest.mark.parametrize("name", ALL)
def test_the_preflight_passes_on_sound_ranks(name: str, ranks: int, tmp_path: Path) -> None:
    code, said = ended(name, {"workers": 1, "slots": ranks, "storage": tmp_path}, ranks=ranks)
    assert code == 0, said
    line = next(line for line in said.splitlines() if line.startswith("gangplan-preflight "))
    facts = json.loads(line.partition(" ")[2])
    assert facts["exitCode"] == 0
    assert [one["rank"] for one in facts["ranks"]] == list(range(ranks))
    assert {one["check"] for one in facts["checks"]} | {"unstarted", "unfinished"} == set(PREFLIGHT_EXITS)
    assert set(facts["allreduceSeconds"]) == {"8", "8000", "800000"}
    assert list(tmp_path.iterdir()) == []
    assert len(said.splitlines()) < 40


@pytest.mark.parametrize("name", ["openmpi5", "mpich"])
@pytest.mark.parametrize(
    ("check", "plan", "shown"),
    [
        ("ranks", {"workers": 1, "slots": 3}, "4 of 3"),
        ("hosts", {"workers": 2, "slots": 2}, "1 of 2"),
        ("gpus", {"workers": 1, "slots": 4, "gpus": 9}, "of 9"),
        ("storage", {"workers": 1, "slots": 4, "storage": "/proc/nowhere"}, "cannot write to /proc/nowhere"),
        ("allreduce", {"workers": 1, "slots": 4}, "wrong on ranks"),
        ("versions", {"workers": 1, "slots": 4}, "of another build"),
    ],
)
def test_each_fault_has_its_exit_code_message_and_cause(
    name: str, check: str, plan: dict[str, object], shown: str
) -> None:
    code, said = ended(name, plan, FAULTS.get(check, ""))
    assert code == PREFLIGHT_EXITS[check].code, said
    assert f"gangplan: preflight failed: {check}: " in said
    assert shown in said
    assert cause_of(said) == f"preflight-{check}"


def test_a_low_limit_of_locked_memory_is_found() -> None:
    text = "import os, resource, sys; resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536))\n"
    code, said = ended("openmpi5", {"workers": 1, "slots": 4, "memlock": True}, text)
    assert code == PREFLIGHT_EXITS["memlock"].code, said
    assert "memlock    FAILED  64 KiB on" in said
    assert cause_of(said) == "preflight-memlock"


# On hosts


def on_hosts(
    folder: Path,
    family: Family,
    text: str,
    fault: str = "",
    binds: dict[str, Path] | None = None,
    lines: str = "",
) -> tuple[int, str]:
    """Run a rendered spec with `preflight: true` on two hosts; return its exit code and output."""
    catalog = workspaces.CATALOG.replace('"}\n', f'"}}\n    preflight: {IN_IMAGE}\n')
    catalog = catalog.replace("setvars.sh}\n", f"setvars.sh}}\n    preflight: {IN_IMAGE}\n")
    bodies = pods.objects(folder / "workspace", text, **{"images/catalog.yaml": catalog})
    cluster = pods.cluster(bodies)
    programs, own = python(family)
    source = PROGRAM.read_text().replace(
        '\nif __name__ == "__main__":', f"\n{fault}\nif __name__ == '__main__':"
    )
    programs |= {"python3": programs["python"], IN_IMAGE: source}
    programs |= {f"{pods.HOME}/train.py": "print('trained', flush=True)\n"}
    image = running.Image(family, programs, bashrc=lines, binds=own | (binds or {}))
    try:
        with running.started(folder, cluster, image) as run:
            return run.end(), run.story()
    except UnavailableError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("name", ALL)
def test_a_rendered_run_trains_after_its_preflight(tmp_path: Path, name: str) -> None:
    family = FAMILIES[name]
    (tmp_path / "claim").mkdir(mode=0o777)
    (tmp_path / "claim").chmod(0o777)
    text = spec_of(family, 2, "preflight: true", "data: {filings: /data}").replace("gpus: 2", "slots: 2")
    code, said = on_hosts(tmp_path, family, text, binds={"/data": tmp_path / "claim"})
    assert code == 0, said
    assert "hosts      ok      2 of 2" in said
    assert "storage    ok      /data" in said
    assert "slowest message by bytes: 8: " in said
    assert said.index("gangplan-preflight {") < said.index("trained")
    assert said.count("trained") == 4


@pytest.mark.parametrize(
    ("check", "gpus"), [("gpus", "gpus: 1"), ("clock", "slots: 1"), ("storage", "slots: 1")]
)
def test_a_rendered_run_does_not_train_on_faulty_workers(tmp_path: Path, check: str, gpus: str) -> None:
    """The faults are missing GPUs, a clock that is ahead, and a claim that the image's user may not write
    to."""
    family = FAMILIES["openmpi5"]
    (tmp_path / "claim").mkdir(mode=0o755)
    text = spec_of(family, 2, "preflight: true", "data: {filings: /data}").replace("gpus: 2", gpus)
    if check != "storage":
        (tmp_path / "claim").chmod(0o777)
    code, said = on_hosts(tmp_path, family, text, FAULTS.get(check, ""), {"/data": tmp_path / "claim"})
    assert code == PREFLIGHT_EXITS[check].code, said
    assert "trained" not in said
    assert cause_of(said) == f"preflight-{check}"


def test_an_image_without_the_preflight_program_is_reported(tmp_path: Path) -> None:
    family = FAMILIES["mpich"]
    text = spec_of(family, 2, "preflight: true").replace("gpus: 2", "slots: 1")
    code, said = on_hosts(tmp_path, family, text, "sys.exit(7)")
    assert code == PREFLIGHT_EXITS["unstarted"].code, said
    assert "gangplan: preflight did not run: mpirun ended with 7" in said
    assert cause_of(said) == "preflight-unstarted"
