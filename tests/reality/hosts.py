"""Hosts on one machine: UTS, network, mount and process namespaces, joined by a bridge.

Each host is a container: files of its own on top of the machine's, eth0, a packet filter, and the command
that the kubelet would start as its first process.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tests.reality.families import UnavailableError

SCRIPT = Path(__file__).with_name("host.sh")
#: The user of a container: the uid and gid of the images.
USER = 1000
PLUG_TIMEOUT_S = 30.0


@cache
def check() -> None:
    """Raise UnavailableError with the reason where this machine cannot run hosts."""
    if os.geteuid() != 0:
        raise UnavailableError("hosts need root: namespaces with several users")
    for program in ("unshare", "nsenter", "setpriv", "ip", "mount"):
        if shutil.which(program) is None:
            raise UnavailableError(f"hosts need the program {program}")
    probe = (
        "mount -t tmpfs t /mnt && mkdir /mnt/a /mnt/b && mount -t overlay o -o lowerdir=/,upperdir=/mnt/a,"
    )
    probe += (
        "workdir=/mnt/b /mnt && ip link add veth0 type veth peer name eth9 && ip link add br0 type bridge"
    )
    words = ["unshare", "--uts", "--net", "--mount", "--pid", "--fork", "sh", "-c", probe]
    done = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)
    if done.returncode:
        raise UnavailableError(f"no namespaces here: {done.stderr.strip()}")


@dataclass
class Host:
    """One host: its name, its files, and its process."""

    name: str
    address: str
    folder: Path
    process: subprocess.Popen[bytes]
    pid: int = 0

    @property
    def out(self) -> str:
        """What the container printed to standard output."""
        return (self.folder / "out").read_text(errors="replace")

    @property
    def err(self) -> str:
        """What the container printed to standard error."""
        return (self.folder / "err").read_text(errors="replace")

    @property
    def is_running(self) -> bool:
        """Whether the first process still runs."""
        return self.process.poll() is None

    def terminate(self) -> None:
        """Send SIGTERM to the container's first process, as the kubelet does."""
        os.kill(self.pid, signal.SIGTERM)

    def wait(self, timeout_s: float) -> int:
        """Wait for the end of the container and return its exit code; 124 if it did not end in time."""
        try:
            code = self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return 124
        return code if code >= 0 else 128 - code

    def run(self, command: Sequence[str], env: Mapping[str, str], timeout_s: float) -> tuple[int, str]:
        """Run a command next to the first process; return its exit code (124: too long) and its output."""
        self._await_files()
        words = ["nsenter", f"--target={self.pid}", "--uts", "--net", "--mount", "--ipc", "--pid", "--root"]
        words += ["timeout", "-k", "5", str(timeout_s), *_become(env), *command]
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=timeout_s + 30,
            check=False,
        )
        return done.returncode, done.stdout

    def _await_files(self) -> None:
        """Wait until the first process uses the container's files: at first it uses the machine's."""
        machine, deadline = os.stat("/"), time.monotonic() + PLUG_TIMEOUT_S
        while self.is_running and time.monotonic() < deadline:
            with suppress(OSError):
                own = os.stat(f"/proc/{self.pid}/root/")
                if (own.st_dev, own.st_ino) != (machine.st_dev, machine.st_ino):
                    return
            time.sleep(0.005)

    def listens(self, port: int) -> bool:
        """Return whether something in the host listens on a TCP port."""
        with suppress(OSError):
            for name in ("tcp", "tcp6"):
                for line in Path(f"/proc/{self.pid}/net/{name}").read_text().splitlines()[1:]:
                    fields = line.split()
                    if fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port:
                        return True
        return False


@dataclass
class Fabric:
    """The hosts of one run and the bridge between them; leaving the context ends them all."""

    folder: Path
    layers: Mapping[str, Path]  # trees to put above the machine's folders; a folder before those in it
    hosts: list[Host] = field(default_factory=list)
    _switch: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Fabric:
        words = ["unshare", "--net", "--fork", "--kill-child", "--", "sh", "-c"]
        lines = "ip link add br0 type bridge && ip link set br0 up && echo up && exec sleep 3600"
        self._switch = subprocess.Popen([*words, lines], stdout=subprocess.PIPE)
        assert self._switch.stdout is not None
        if self._switch.stdout.readline() != b"up\n":
            raise RuntimeError("the bridge between the hosts did not come up")
        return self

    def __exit__(self, *_: object) -> None:
        processes = [host.process for host in self.hosts] + ([self._switch] if self._switch else [])
        for host in self.hosts:
            # When a namespace's first process ends, all processes in it end. While unshare waits for it, the
            # number cannot belong to another process.
            if host.pid and host.is_running:
                with suppress(ProcessLookupError):
                    os.kill(host.pid, signal.SIGKILL)
        for process in processes:
            process.kill()
        for process in processes:
            process.wait(10)
            for pipe in (process.stdin, process.stdout):
                if pipe:
                    with suppress(OSError):
                        pipe.close()

    def start(
        self,
        name: str,
        address: str,
        command: Sequence[str],
        env: Mapping[str, str],
        files: Mapping[str, str],
        modes: Mapping[str, int],
        filters: str = "",
        binds: Mapping[str, Path] | None = None,
        networks: Mapping[str, str] | None = None,
        start_in: str = "",
        base: Path | None = None,
    ) -> Host:
        """Make a host, which waits to be plugged in. `files` are the container's own, by path from its root.

        They are root's and of the user's group, as mounted secrets are with fsGroup; the home is the user's.
        The command starts in the folder `start_in`, by default the home. `base` is the root of an image, in
        place of the machine's own files. `networks` are further interfaces with their addresses, by name,
        without other hosts.
        """
        folder = self.folder / name
        for part in ("disk", "files"):
            (folder / part).mkdir(parents=True)
        (folder / "name").write_text(name)
        (folder / "filter").write_text(filters)
        if base is not None:
            (folder / "base").write_text(str(base))
        more = (networks or {}).items()
        (folder / "networks").write_text("".join(f"{name} {own}\n" for name, own in more))
        for path, text in files.items():
            target = folder / "files" / path.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
            target.chmod(modes.get(path, 0o644))
            os.chown(target, 0, USER)
        home = folder / "files" / env.get("HOME", "/nowhere").lstrip("/")
        if home.is_dir():
            os.chown(home, USER, USER)
        mounts = "\n".join(f"{path}={source}" for path, source in (binds or {}).items())
        layers = "\n".join(f"{place}={tree}" for place, tree in self.layers.items())
        words = [
            "unshare",
            "--uts",
            "--net",
            "--mount",
            "--ipc",
            "--pid",
            "--fork",
            "--kill-child",
            "--",
            "/bin/sh",
        ]
        words += [str(SCRIPT), str(folder), layers, address, mounts, *_become(env, start_in), *command]
        with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
            process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=out, stderr=err)
        host = Host(name, address, folder, process)
        self.hosts.append(host)
        return host

    def plug(self, hosts: Sequence[Host]) -> None:
        """Give hosts their eth0 and let their first processes continue."""
        deadline = time.monotonic() + PLUG_TIMEOUT_S
        for host in hosts:
            while not (host.folder / "ready").exists():
                if not host.is_running or time.monotonic() > deadline:
                    raise RuntimeError(f"host {host.name} did not come up: {host.err}")
                time.sleep(0.005)
            children = Path(f"/proc/{host.process.pid}/task/{host.process.pid}/children").read_text()
            host.pid = int(children.split()[0])
        numbers = {host.name: 1 + self.hosts.index(host) for host in hosts}
        lines = [
            f"link add veth{numbers[host.name]} type veth peer name eth0 netns {host.pid}\n"
            f"link set veth{numbers[host.name]} master br0 up\n"
            for host in hosts
        ]
        assert self._switch is not None
        inner = ["nsenter", "--net", f"--target={_child(self._switch.pid)}", "ip", "-batch", "-"]
        subprocess.run(inner, input="".join(lines), text=True, check=True, timeout=PLUG_TIMEOUT_S)
        for host in hosts:
            assert host.process.stdin is not None
            host.process.stdin.write(b"go\n")
            host.process.stdin.close()


def _become(env: Mapping[str, str], start_in: str = "") -> list[str]:
    """Return the words that run a command as the user, without privileges, in an environment of its own."""
    words = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--no-new-privs"]
    # A change of user clears the signal by which --kill-child ends a host whose test has ended (prctl(2)).
    words += ["--pdeathsig=keep"]
    words += ["--bounding-set=-all", "--inh-caps=-all", "env", "-i", "-C", start_in or env.get("HOME", "/")]
    return words + [f"{key}={value}" for key, value in env.items()]


def _child(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def shown(command: Sequence[str]) -> str:
    """Return a command as one would type it."""
    return shlex.join(command)
