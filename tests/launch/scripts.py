"""The launcher's script as it is rendered, and a folder in which it runs with stand-ins for its programs."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests import plain, workspaces
from tests.kubelet import started

WAIT_S = 3
SHELLS = [shell for shell in ("/usr/bin/dash", "/bin/bash", "/bin/busybox") if Path(shell).exists()]
#: For tests that wait for seconds: the gate has one shell, and `make reality` all.
SHELLS_THAT_WAIT = [SHELLS[0], *(pytest.param(shell, marks=pytest.mark.reality) for shell in SHELLS[1:])]

_GETENT = """\
#!/bin/sh
echo "getent $*" >>"$LOG"
[ "$(grep -c "^getent hosts $2\\$" "$LOG")" -ge "$(cat "$FACTS/slow-$2" 2>/dev/null || echo 1)" ] || exit 2
grep -x "$2" "$FACTS/known"
"""
_MPIRUN = """\
#!/bin/sh
echo "mpirun $*" >>"$LOG"
read -r nothing && echo "mpirun was given an input" >>"$LOG"
[ ! -e "$FACTS/hangs" ] || sleep 60
case "$*" in
*gangplan-host*)
  cat "$FACTS/chatter" 2>/dev/null
  sed 's/^/gangplan-host /' "$FACTS/reached"
  exit "$(cat "$FACTS/code" 2>/dev/null || echo 0)"
  ;;
esac
"""
_PROGRAM = """\
#!/bin/sh
echo "program $# $*" >>"$LOG"
exit 7
"""
_SLEEP = """\
#!/bin/sh
[ "$1" = 1 ] || exec /bin/sleep "$1"
echo "sleep 1" >>"$LOG"
"""


def container(spec: str, role: str = "launcher", folder: Path | None = None, **files: str) -> dict[str, Any]:
    """The container of a role, as the runtime of a spec in the small workspace has it, once it is started."""
    assert folder is not None
    root = workspaces.stock(folder / "workspace")
    workspaces.write(root, {"specs/nlp/filings.yaml": spec, **files})
    outcome = workspaces.render(root, "-o", "-", "specs/nlp/filings.yaml")
    runtime = next(body for body in plain.load_all(outcome.out) if body and body["kind"] == "TrainingRuntime")
    jobs = {job["name"]: job for job in runtime["spec"]["template"]["spec"]["replicatedJobs"]}
    found: dict[str, Any] = jobs[role]["template"]["spec"]["template"]["spec"]["containers"][0]
    return started(found)


@dataclass
class Pod:
    """A stand-in for the launcher's pod: a hostfile, stub programs, and what they saw."""

    folder: Path
    shell: Sequence[str]
    script: str
    env: dict[str, str]

    @classmethod
    def of(cls, folder: Path, shell: str, script: str, env: dict[str, str] | None = None) -> Pod:
        """The pod with the hosts that the plan has, all of them known and reached."""
        words = [shell, "sh"] if shell.endswith("busybox") else [shell]
        pod = cls(folder, words, script, env or {})
        (folder / "bin").mkdir()
        (folder / "facts").mkdir()
        stubs = {"getent": _GETENT, "mpirun": _MPIRUN, "program": _PROGRAM, "sleep": _SLEEP}
        for name, text in stubs.items():
            (folder / "bin" / name).write_text(text)
            (folder / "bin" / name).chmod(0o755)
        hosts = [f"run-node-0-{index}.run" for index in range(4)]
        pod.hosts(hosts)
        pod.fact("known", *hosts)
        pod.fact("reached", *[host.split(".")[0] for host in hosts])
        return pod

    def hosts(self, names: list[str]) -> None:
        """The hostfile that Trainer writes."""
        (self.folder / "hostfile").write_text("".join(f"{name} slots=2\n" for name in names))

    def fact(self, name: str, *lines: str) -> None:
        """Something that a stub is to say."""
        (self.folder / "facts" / name).write_text("".join(f"{line}\n" for line in lines))

    def start(self, *argv: str) -> subprocess.CompletedProcess[str]:
        """Run the script as the container does, to its end."""
        with self.begun(*argv) as process:
            process.wait(timeout=30)
            told = [(self.folder / name).read_text() for name in ("stdout", "stderr")]
        return subprocess.CompletedProcess(argv, process.returncode, *told)

    @contextmanager
    def begun(self, *argv: str) -> Iterator[subprocess.Popen[bytes]]:
        """Start the script as the container does; what it leaves behind ends with it, as in a pod."""
        script = self.script.replace("/tmp/gangplan-", f"{self.folder}/gangplan-")
        script = script.replace("/etc/mpi/", f"{self.folder}/")
        (self.folder / "log").write_text("")
        env = {
            "PATH": f"{self.folder}/bin:{os.defpath}:/usr/bin:/bin",
            "HOME": str(self.folder),
            "LOG": str(self.folder / "log"),
            "FACTS": str(self.folder / "facts"),
            **self.env,
        }
        words = [*self.shell, "-c", script, "gangplan-launch", *argv]
        with (self.folder / "stdout").open("wb") as out, (self.folder / "stderr").open("wb") as err:
            process = subprocess.Popen(
                words, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
            )
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    @property
    def log(self) -> list[str]:
        """What the stubs saw."""
        return (self.folder / "log").read_text().splitlines()
