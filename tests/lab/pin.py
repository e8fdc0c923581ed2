"""Write the pinned ``go.mod`` and ``go.sum`` of a program: ``python -m tests.lab.pin NAME VERSION``.

Only needed to add a version; the results are committed. The file starts from upstream's own ``go.mod`` (Go
version, replacements, compatibility settings) and ``go.sum`` (some upstream dependencies are unknown to the
checksum database).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from . import programs
from .go import go
from .programs import Program

#: For modules that upstream replaces with a folder of its own repository: the published version, if it is not
#: the obvious one.
PUBLISHED = {
    ("argocd", "3.5.1"): {"github.com/argoproj/argo-cd/gitops-engine": "v0.0.0-20260914071520-c9c369efcc5b"},
}

#: What our main file needs in addition to the program's own module.
BESIDE = {("tekton-check", "1.9.0"): ("github.com/tektoncd/triggers v0.35.0",)}


def upstream(program: Program, folder: Path) -> tuple[dict[str, Any], Path]:
    """Download a program's module; return its ``go.mod`` as data, and its ``go.sum``."""
    found = json.loads(go("mod", "download", "-json", f"{program.module}@v{program.version}", folder=folder))
    mod = json.loads(go("mod", "edit", "-json", found["GoMod"], folder=folder))
    return mod, Path(found["Dir"]) / "go.sum"


def replacement(program: Program, rule: dict[str, Any]) -> str | None:
    """Return one upstream ``replace`` as a line of ours, or None to leave it out."""
    old, new = rule["Old"]["Path"], rule["New"]
    if not new["Path"].startswith("."):
        return f"replace {old} => {new['Path']} {new['Version']}"
    version = PUBLISHED.get((program.name, program.version), {}).get(old)
    if not version and "/staging/src/" in new["Path"]:
        version = f"v0.{program.version.split('.', 1)[1]}"
    return f"replace {old} => {old} {version}" if version else None


def module_file(program: Program, mod: dict[str, Any]) -> str:
    """Return the text of our ``go.mod`` before ``go mod tidy`` completes it."""
    lines = ["module gangplan.dev/lab", f"go {mod['Go']}"]
    lines += [f"godebug {item['Key']}={item['Value']}" for item in mod.get("Godebug") or ()]
    lines += [f"tool {program.package}"] if program.package else []
    wanted = [f"{item['Path']} {item['Version']}" for item in mod["Require"] if not _local(item["Version"])]
    wanted += BESIDE.get((program.name, program.version), ())
    lines += ["require (", f"{program.module} v{program.version}", *wanted, ")"]
    lines += [line for rule in mod.get("Replace") or () if (line := replacement(program, rule))]
    return "\n".join(lines) + "\n"


def _local(version: str) -> bool:
    """Return whether a required version only stands for a folder of the repository."""
    return version.startswith("v0.0.0") and "-" not in version


def pin(program: Program) -> None:
    """Write the pinned files of one program."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        mod, sums = upstream(program, folder)
        (folder / "go.mod").write_text(module_file(program, mod))
        shutil.copyfile(sums, folder / "go.sum")
        if program.main:
            shutil.copyfile(program.main, folder / "main.go")
        subprocess.run(["go", "mod", "tidy"], cwd=folder, check=True)
        program.pins.mkdir(parents=True, exist_ok=True)
        for file in ("go.mod", "go.sum"):
            shutil.copyfile(folder / file, program.pins / file)


def main() -> None:
    """Pin one program, or all that the lab knows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="?", help="program, such as kueue (default: every pinned one)")
    parser.add_argument("version", nargs="?", help="version without the leading v")
    options = parser.parse_args()
    os.environ.setdefault("GOFLAGS", "-buildvcs=false")
    if options.version:
        pin(getattr(programs, options.name)(options.version))
        return
    for program in programs.CATALOG:
        if options.name in (None, program.name):
            print(program.key, flush=True)
            pin(program)


if __name__ == "__main__":
    main()
