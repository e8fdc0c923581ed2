"""Build what the lab runs, once.

Each program becomes a folder ``<name>-<version>-<digest>`` of the cache with its executable and its
installation manifests. The digest covers the pinned module files, so a changed pin is a new folder and an
unchanged one costs nothing.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from . import assets, folders, profiles
from .go import go
from .programs import AMTOOL, ARGOCD, DISTRIBUTION, KUSTOMIZE, PROMTOOL, Program

GO = (1, 26)
INSTALL_GO = f"install Go {GO[0]}.{GO[1]} or later (make lab builds the control plane with it)"

Say = Callable[[str], None]

#: The prefix of the folders in which something is built; a run of CI that needs room deletes them
#: (.ci/gate.py).
_ASIDE = ".building-"


class GoMissingError(RuntimeError):
    """The machine has no usable Go toolchain; the message says what to install."""


def say(line: str) -> None:
    """Print one line of progress."""
    print(f"lab: {line}", file=sys.stderr, flush=True)


def home(program: Program) -> Path:
    """Return the folder of a built program, whether or not it exists."""
    return folders.cache() / f"{program.key}-{program.digest()}"


def executable(program: Program, name: str | None = None) -> Path:
    """Return one executable of a built program."""
    return home(program) / "bin" / (name or program.binaries[0])


def missing(programs: Iterable[Program]) -> list[Program]:
    """Return the programs that are not in the cache, each once."""
    return [program for program in dict.fromkeys(programs) if not home(program).is_dir()]


def problem() -> str | None:
    """Return why this machine can't build, or None if it can."""
    if not shutil.which("go"):
        return f"no Go toolchain: {INSTALL_GO}"
    told = subprocess.run(["go", "env", "GOVERSION"], capture_output=True, text=True, check=False).stdout
    version = re.match(r"go(\d+)\.(\d+)", told)
    if version and (int(version[1]), int(version[2])) < GO:
        return f"{told.strip()} is too old: {INSTALL_GO}"
    return None


def ensure(programs: Iterable[Program], report: Say = say) -> None:
    """Build what is missing; concurrent callers wait for each other.

    Raises GoMissingError if something is missing and this machine cannot build it.
    """
    absent = missing(programs)
    if not absent:
        return
    if trouble := problem():
        raise GoMissingError(trouble)
    if any(program.name in assets.BUILT for program in absent):
        absent = list(dict.fromkeys([KUSTOMIZE, *absent]))
    absent.sort(key=lambda program: program != KUSTOMIZE)
    with folders.exclusive(folders.cache() / "build.lock"):
        for left in folders.cache().glob(f"{_ASIDE}*"):  # by a build that was killed: no other build runs now
            shutil.rmtree(left, ignore_errors=True)
        with tempfile.TemporaryDirectory(dir=folders.cache(), prefix=_ASIDE) as name:
            for number, program in enumerate(absent, 1):
                if not home(program).is_dir():
                    report(f"building {program.name} {program.version} ({number} of {len(absent)}) ...")
                    began = time.monotonic()
                    _build(program, Path(name))
                    report(f"built {program.name} {program.version} in {time.monotonic() - began:.0f} s")


def _build(program: Program, shared: Path) -> None:
    """Build one program in a temporary folder, then move it into place at once.

    The compiler's cache is in `shared`, so that programs with the same packages compile them once, and
    gigabytes are deleted when all are built. Modules stay in Go's own cache.
    """
    target = home(program)
    aside = {"GOCACHE": str(shared / "compiled"), "GOTMPDIR": str(shared)}
    with tempfile.TemporaryDirectory(dir=shared) as name:
        source, result = Path(name) / "source", Path(name) / "result"
        (result / "bin").mkdir(parents=True)
        source.mkdir()
        for path in program.sources():
            shutil.copyfile(path, source / path.name)
        module = Path(json.loads(go("mod", "download", "-json", program.module, folder=source))["Dir"])
        first = result / "bin" / program.binaries[0]
        flags = ("-buildvcs=false", "-ldflags", program.ldflags())
        package = _package(program, source, module)
        go("build", *flags, "-o", str(first), package, folder=source, environment=aside)
        for other in program.binaries[1:]:
            os.link(first, first.with_name(other))
        manifests = assets.manifests(program, module, executable(KUSTOMIZE))
        (result / "manifests.json").write_text(json.dumps(manifests))
        result.rename(target)


def _package(program: Program, folder: Path, module: Path) -> str:
    """Return the package to build: upstream's, our own main file, or upstream's main file with edits."""
    if program.package and not program.edits:
        return program.package
    if program.package:
        upstream = module / program.package.removeprefix(program.module).strip("/") / "main.go"
        text = upstream.read_text()
        for old, new in program.edits:
            if text.count(old) != 1:
                raise RuntimeError(f"{upstream}: expected {old} once, found it {text.count(old)} times")
            text = text.replace(old, new)
        (folder / "main.go").write_text(text)
    return "."


def wanted(names: Collection[str]) -> list[Program]:
    """Return the programs of some profiles, or of ``all``, with Argo CD, promtool, amtool and a registry."""
    chosen = [each for each in profiles.PROFILES if each.name in names or "all" in names]
    others = (KUSTOMIZE, ARGOCD, PROMTOOL, AMTOOL, DISTRIBUTION)
    return [program for each in chosen for program in (*each.programs, *others)]
