"""`gangplan run` in a process of its own, with a PATH that the test chooses."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests import workspaces
from tests.signals import LISTENING

#: Prints its rank, then does what its arguments say.
PROGRAM = """\
import os, sys, time
from mpi4py import MPI
world = MPI.COMM_WORLD
words = ["rank", world.Get_rank(), "of", world.Get_size(), "arguments", *sys.argv[1:]]
sys.stdout.write(" ".join(map(str, words)) + "\\n")  # at once: ranks may share a pipe
total = world.allreduce(world.Get_rank() + 1)
assert total == world.Get_size() * (world.Get_size() + 1) // 2
if "fail" in sys.argv and world.Get_rank() == 1:
    print("no such shard: part-7", file=sys.stderr, flush=True)
    sys.exit(41)
if "sleep" in sys.argv:
    open(os.path.join(os.environ["TMPDIR"], "..", "..", "asleep"), "w").close()
    time.sleep(600)
"""
_MAIN = "import sys; from gangplan.entry import main; sys.exit(main())"


class Done:
    """The end of a run, and a check of what is left behind."""

    def __init__(self, process: subprocess.Popen[str], scratch: Path, timeout_s: float) -> None:
        self.out, self.err = process.communicate(timeout=timeout_s)
        self.code, self.scratch = process.returncode, scratch

    @property
    def left(self) -> list[str]:
        """The folders of runs that still exist."""
        return [path.name for path in self.scratch.glob("gangplan-run-*")]


def workspace(root: Path, spec: str, program: str = PROGRAM) -> Path:
    """Write the small workspace with a spec and its program."""
    workspaces.stock(root)
    workspaces.write(root, {"overlays/lab/cluster.yaml": workspaces.WIDE_CLUSTER})
    workspaces.write(root, {"specs/nlp/filings.yaml": spec, "train.py": program})
    return root


def plain_workspace(root: Path, program: str, workers: int = 2) -> Path:
    """Write a workspace whose job starts its program on each worker, without an MPI."""
    catalog = workspaces.CATALOG + "  tool:\n    repository: registry.example.com/tool\n"
    catalog += f"    digest: sha256:{'9' * 64}\n    framework: plain\n"
    spec = workspaces.SPEC.replace("image: openmpi", "image: tool").replace("gpus: 2\n", "")
    workspace(root, spec.replace("workers: 4", f"workers: {workers}"), program)
    workspaces.write(root, {"images/catalog.yaml": catalog})
    return root


def start(
    root: Path,
    *arguments: str,
    env: Mapping[str, str] | None = None,
    folder: Path | None = None,
    setup: str = "",
) -> tuple[subprocess.Popen[str], Path]:
    """Start `gangplan run` with the small workspace's spec, and return the process and its scratch folder.

    `setup` is Python that its process runs first.
    """
    # Short: MPIs make sockets in it, and paths of sockets have at most 107 characters.
    made = tempfile.TemporaryDirectory(prefix="g-")
    atexit.register(made.cleanup)
    scratch = Path(made.name)
    spec = [] if arguments and arguments[0].endswith(".yaml") else ["specs/nlp/filings.yaml"]
    process = subprocess.Popen(
        [sys.executable, "-c", LISTENING + setup + _MAIN, "run", *spec, *arguments],
        cwd=folder or root,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(root),
            "TMPDIR": str(scratch),
            "PYTHONPATH": str(workspaces.REPOSITORY),  # the code next to the tests, not an installed one
            **(env or {}),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    return process, scratch


def run(
    root: Path, *arguments: str, env: Mapping[str, str] | None = None, folder: Path | None = None
) -> Done:
    """Run `gangplan run` to its end, and check that it leaves no process behind."""
    process, scratch = start(root, *arguments, env=env, folder=folder)
    done = Done(process, scratch, 120)
    assert processes(scratch) == []
    return done


def processes(scratch: Path) -> list[int]:
    """Return the processes of runs in a folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if f"GANGPLAN_LOCAL_RUN={scratch}/".encode() in (path / "environ").read_bytes():
                found.append(int(path.name))
        except OSError:
            continue
    return found
