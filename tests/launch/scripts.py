"""Launch scripts as they are rendered, and a folder in which they run with stand-ins for programs."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import pytest

from gangplan.generators.scripts import SCRIPTS_FOLDER
from tests import plain, workspaces
from tests.kubelet import expand_local_container_like_kubelet, read_config_map_for_local_mount

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
case $(timeout 0.2 sed q; echo "$?") in
0) ;;
124) echo "mpirun has an input that does not end" >>"$LOG" ;;
*) echo "mpirun was given an input" >>"$LOG" ;;
esac
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


def words_of(shell: str) -> list[str]:
    """The words that start a shell."""
    return [shell, "sh"] if shell.endswith("busybox") else [shell]


@dataclass
class Container:
    """A container as it is rendered, once it is started: its words, its variables and the scripts that it
    mounts."""

    command: list[str]
    args: list[str]
    env: dict[str, str]
    scripts: dict[str, str]

    @property
    def options(self) -> list[str]:
        """The options of its script."""
        return self.command[4 : self.command.index("--")]

    def change(self, old: str, new: str) -> None:
        """Replace something in the options or in the scripts. It must be there."""
        texts = [*self.command, *self.scripts.values()]
        assert any(old in text for text in texts), old
        self.command = [word.replace(old, new) for word in self.command]
        self.scripts = {name: text.replace(old, new) for name, text in self.scripts.items()}

    def placed(self, folder: Path, shell: Sequence[str], moved: Mapping[str, str]) -> list[str]:
        """Write the scripts into a folder, and return the command that starts them there with a shell.

        `moved` are paths of the container with their places here.
        """
        place = replacing({**moved, SCRIPTS_FOLDER: str(folder)})
        stated = written(self.scripts, folder, place)
        assert self.command[:2] == ["/bin/sh", "-c"]
        start, count = re.subn(r"\b[0-9a-f]{64}\b", stated, place(self.command[2]))
        assert (count, start.count("exec /bin/sh ")) == (1, 1)
        start = start.replace("exec /bin/sh ", f"exec {' '.join(shell)} ")
        return [*shell, "-c", start, *map(place, self.command[3:])]


def replacing(moved: Mapping[str, str]) -> Callable[[str], str]:
    """A function that replaces the beginnings of paths."""
    pattern = re.compile("|".join(map(re.escape, moved)))
    return lambda text: pattern.sub(lambda found: moved[found.group()], text)


def written(scripts: Mapping[str, str], folder: Path, place: Callable[[str], str]) -> str:
    """Write scripts into a folder, each changed by a function; return the digest of all."""
    folder.mkdir(parents=True, exist_ok=True)
    total = sha256()
    for name in sorted(scripts):
        text = place(scripts[name])
        (folder / name).write_text(text)
        total.update(f"{sha256(text.encode()).hexdigest()}  {name}\n".encode())
    return total.hexdigest()


def container(spec: str, role: str = "launcher", folder: Path | None = None, **files: str) -> Container:
    """The container of a role, as the runtime of a spec in the small workspace has it, once it is started."""
    assert folder is not None
    root = workspaces.stock(folder / "workspace")
    workspaces.write(root, {"specs/nlp/filings.yaml": spec, **files})
    outcome = workspaces.render(root, "-o", "-", "specs/nlp/filings.yaml")
    bodies = [body for body in plain.load_all(outcome.out) if body]
    runtime = next(body for body in bodies if body["kind"] == "TrainingRuntime")
    jobs = {job["name"]: job for job in runtime["spec"]["template"]["spec"]["replicatedJobs"]}
    pod = jobs[role]["template"]["spec"]["template"]["spec"]
    found = expand_local_container_like_kubelet(pod["containers"][0])
    _, scripts = read_config_map_for_local_mount(pod, SCRIPTS_FOLDER, bodies)
    return Container(found["command"], found["args"], found["env"], scripts)


@dataclass
class Pod:
    """A stand-in for the launcher's pod: a hostfile, stub programs, and what they saw."""

    folder: Path
    shell: Sequence[str]
    box: Container
    env: dict[str, str]
    moved: dict[str, str] = field(default_factory=dict)
    path: str = ""  # if it is not to have the machine's programs

    @classmethod
    def of(cls, folder: Path, shell: str, box: Container, env: dict[str, str] | None = None) -> Pod:
        """The pod with the hosts that the plan has, all of them known and reached."""
        pod = cls(folder, words_of(shell), box, env or {})
        pod.moved = dict.fromkeys(("/etc/mpi/", "/tmp/", "/dev/shm/"), f"{folder}/")
        pod.moved["/opt/intel/oneapi/"] = f"{folder}/"
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
        return self.run([*self.placed(), *argv])

    def placed(self) -> list[str]:
        """Write the scripts, and return the command that starts them."""
        return self.box.placed(self.folder / "launch", self.shell, self.moved)

    def run(self, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Run a command in the pod to its end."""
        with self._running(words) as process:
            process.wait(timeout=30)
            told = [(self.folder / name).read_text() for name in ("stdout", "stderr")]
        return subprocess.CompletedProcess(words, process.returncode, *told)

    @contextmanager
    def begun(self, *argv: str) -> Iterator[subprocess.Popen[bytes]]:
        """Start the script as the container does; what it leaves behind ends with it, as in a pod."""
        with self._running([*self.placed(), *argv]) as process:
            yield process

    @contextmanager
    def _running(self, words: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
        (self.folder / "log").write_text("")
        env = {
            "PATH": self.path or f"{self.folder}/bin:{os.defpath}:/usr/bin:/bin",
            "HOME": str(self.folder),
            "LOG": str(self.folder / "log"),
            "FACTS": str(self.folder / "facts"),
            **self.env,
        }
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
