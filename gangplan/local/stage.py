"""The folder of a run on this machine: stand-ins for a container's programs, and environments."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from gangplan.errors import ToolError
from gangplan.local.mpis import LocalMpi
from gangplan.local.places import LocalPlaces
from gangplan.local.pods import LOOPBACK, LocalPod, LocalPods
from gangplan.records import dataclass
from gangplan.tools.run import run_program

MARK = "GANGPLAN_LOCAL_RUN"
MARK_FILE = ".gangplan-run"
# Variables of this machine that programs need and no container sets.
_KEPT = (
    *("LANG", "LC_ALL", "LC_CTYPE", "TZ", "TERM", "VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "PYTHONHOME"),
    *("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "OPAL_PREFIX"),
)
_ASK = "import sys; sys.exit(0 if __import__('importlib.util').util.find_spec('mpi4py') else 1)"

_GETENT = """\
#!/bin/sh
[ "$1" != hosts ] || case " {names} " in *" $2 "*) echo "127.0.0.1 $2"; exit 0 ;; esac
{real}
"""
_UNAME = """\
#!/bin/sh
[ "$*" != -n ] || {{ echo "${{GANGPLAN_HOST:-{launcher}}}"; exit 0; }}
exec {real} "$@"
"""
_HOSTNAME = """\
#!/bin/sh
echo "${{GANGPLAN_HOST:-{launcher}}}"
"""


@dataclass(frozen=True, slots=True)
class LocalStage:
    """The surroundings of a local run: its folder, its paths, its MPI and its Python."""

    root: Path
    places: LocalPlaces
    mpi: LocalMpi | None
    python: str
    token: str  # in the tags of the output's lines

    @property
    def mark(self) -> str:
        """The variable in the environment of every process of the run."""
        return f"{MARK}={self.root}"

    @property
    def rank_program(self) -> str:
        """The program that starts the program of a rank."""
        return "gangplan-rank"

    def aside(self, name: str) -> list[str]:
        """Return the words that start another program of this package, up to the folder of the run."""
        return [sys.executable, "-I", "-S", str(Path(__file__).with_name(name)), str(self.root)]

    def env(self, pod: LocalPod) -> dict[str, str]:
        """Return the environment of a pod's first process."""
        env = {**self._base(), **{name: self.places.text(value) for name, value in pod.env.items()}}
        if pod.role != "launcher":
            env |= {"GANGPLAN_HOST": pod.name, "GANGPLAN_WORKER": str(pod.index)}
        env["HOSTNAME"] = pod.name
        return env

    def login(self, pod: LocalPod) -> dict[str, str]:
        """Return the environment of an SSH session on a worker: the worker's own, not the launcher's."""
        own = {name: self.places.text(value) for name, value in pod.own.items()}
        folder = self.root / "tmp" / str(pod.index)
        folder.mkdir(parents=True, exist_ok=True)
        return {**self._base(), **own, "TMPDIR": str(folder), "GANGPLAN_HOST": pod.name}

    def _base(self) -> dict[str, str]:
        env = {name: os.environ[name] for name in _KEPT if name in os.environ}
        folders = [str(self.root / "bin"), *([str(self.mpi.folder)] if self.mpi else [])]
        env["PATH"] = os.pathsep.join([*folders, os.environ.get("PATH", os.defpath)])
        env |= {"HOME": str(self.root / "home"), "TMPDIR": str(self.root / "tmp"), MARK: str(self.root)}
        env |= {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1"}
        if user := os.environ.get("PYTHONUSERBASE") or os.path.expanduser("~/.local"):
            env["PYTHONUSERBASE"] = user
        if self.mpi is not None:
            env |= _build_local_mpi_variables(self.mpi)
        return env

    def write(self, cast: LocalPods) -> None:
        """Write the stand-ins, the hostfile and the facts about each worker."""
        for folder in ("bin", "home", "ranks", "etc", "tmp", "shm"):
            (self.root / folder).mkdir(parents=True, exist_ok=True)
        (self.root / "etc/hostfile").write_text(cast.hostfile)
        if cast.launcher is None:  # an MPI must not take a worker for the machine where mpirun runs
            (self.root / "etc/hosts").write_text(_build_local_hosts_file(cast))
        rank, ssh = shlex.join([*self.aside("tag.py"), self.token]), shlex.join(self.aside("hop.py"))
        names = [name for pod in cast.pods for name in pod.names]
        launcher = cast.launcher.name if cast.launcher else cast.pods[0].name
        real = {name: _find_quoted_program(name) for name in ("uname", "getent")}
        programs = {
            "gangplan-rank": f'#!/bin/sh\nexec {rank} "$@"\n',
            "ssh": f'#!/bin/sh\nexec {ssh} "$@"\n',
            "python": f'#!/bin/sh\nexec {shlex.quote(self.python)} "$@"\n',
            "uname": _UNAME.format(launcher=launcher, real=real["uname"] or "false"),
            "hostname": _HOSTNAME.format(launcher=launcher),
            "getent": _GETENT.format(
                names=" ".join(names), real=f'exec {real["getent"]} "$@"' if real["getent"] else "exit 2"
            ),
        }
        programs["python3"] = programs["python"]
        if shutil.which("timeout") is None:  # macOS has none; gangplan limits the run's time anyway
            programs["timeout"] = '#!/bin/sh\n[ "$1" != -k ] || shift 2\nshift\nexec "$@"\n'
        for name, text in programs.items():
            path = self.root / "bin" / name
            path.write_text(text)
            path.chmod(0o755)
        hosts = [
            {"names": list(pod.names), "folder": str(self.places.folder), "env": self.login(pod)}
            for pod in cast.pods
        ]
        place = self.root / "hosts.json"
        place.touch(mode=0o600)
        place.write_text(json.dumps(hosts))


def guard_folder_against_local_run(root: Path, folder: Path, writable: Sequence[Path]) -> None:
    """Make a folder read-only for the processes of a run, but not the run's own folder and those in `writable`.

    hop.py does it, as far as the system allows namespaces.
    """
    folder = folder.resolve()
    if any(folder.is_relative_to(one) for one in writable):
        return
    (root / "etc").mkdir(parents=True, exist_ok=True)
    inside = [str(one) for one in (root, *writable) if one.is_relative_to(folder)]
    (root / "etc/shut.json").write_text(json.dumps([str(folder), *inside]))


def _build_local_hosts_file(cast: LocalPods) -> str:
    """Return this machine's /etc/hosts with the names of all pods: frameworks such as JAX look up their own
    host."""
    own = "127.0.0.1 localhost"
    with suppress(OSError, UnicodeDecodeError):
        own = Path("/etc/hosts").read_text(encoding="utf-8")
    return own + "".join(f"\n127.0.0.1 {' '.join(pod.names)}" for pod in cast.pods) + "\n"


def _build_local_mpi_variables(mpi: LocalMpi) -> dict[str, str]:
    """Return the variables that an MPI needs if all hosts are one machine, connected by the loopback."""
    env = {"MPI4PY_LIBMPI": str(mpi.library)} if mpi.library else {}
    if mpi.build.family != "OpenMPI":
        env["FI_TCP_IFACE"] = LOOPBACK
        if mpi.build.family == "IntelMPI":
            env["I_MPI_ROOT"] = os.environ.get("I_MPI_ROOT", str(mpi.folder.parent))
        return env
    # Open MPI 5 skips the loopback in any case, and its ranks hang if its use is forced (5.0.11).
    if mpi.build.major < 5:
        env |= {"OMPI_MCA_btl_tcp_if_include": LOOPBACK, "OMPI_MCA_oob_tcp_if_include": LOOPBACK}
        env["OMPI_MCA_if_base_retain_loopback"] = "1"
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        for tool in ("OMPI", "PRTE"):
            env |= {f"{tool}_ALLOW_RUN_AS_ROOT": "1", f"{tool}_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return env


def _find_quoted_program(name: str) -> str:
    return shlex.quote(found) if (found := shutil.which(name)) else ""


def find_local_python(wants_mpi: bool, chosen: str | None) -> str:
    """Return the Python for programs: the chosen one, otherwise PATH's, otherwise gangplan's; with MPI,
    preferably one with mpi4py.

    Raises ToolError if the chosen one does not exist.
    """
    if chosen is not None:
        found = shutil.which(chosen)
        if found is None:
            raise ToolError(f"there is no Python {chosen}", "Name its program: --python .venv/bin/python.")
        return str(Path(found).absolute())
    known = [found for name in ("python", "python3") if (found := shutil.which(name))]
    known = list(dict.fromkeys([*known, sys.executable]))
    return next((one for one in known if has_mpi4py_module(one)), known[0]) if wants_mpi else known[0]


def has_mpi4py_module(python: str) -> bool:
    """Return whether a Python has mpi4py."""
    try:
        return run_program([python, "-c", _ASK], timeout_s=20, ok=(0, 1)).returncode == 0
    except ToolError:
        return False


def can_set_host_names() -> bool:
    """Return whether processes can have host names of their own (Linux, as root or with user namespaces)."""
    program = [sys.executable, "-I", "-S", str(Path(__file__).with_name("hop.py")), "", "--can"]
    return run_program(program, timeout_s=20, ok=(0, 1)).returncode == 0


# The kernel's tables of this network namespace, with the column of the interface of each route and IPv6
# address.
_TABLES = {"/proc/self/net/route": 0, "/proc/self/net/if_inet6": -1}


def has_non_loopback_interface() -> bool:
    """Return whether an interface other than the loopback has an address; outside Linux, this is assumed."""
    found = {
        line.split()[column]
        for path, column in _TABLES.items()
        if os.path.exists(path)
        for line in Path(path).read_text(encoding="ascii").splitlines()
    }
    return not found or bool(found - {"Iface", LOOPBACK})


def check_local_programs(words: Mapping[str, str]) -> None:
    """Raise ToolError for the first program that is not on PATH; `words` maps programs to sources."""
    for name, source in words.items():
        if shutil.which(name) is None:
            raise ToolError(f"{name} is not on PATH, and the job starts with it", source)
