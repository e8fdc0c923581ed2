"""One source, imported as found with the flags that findings ask for, then rendered and validated."""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from gangplan.imports.batch import Batch, judge_import_batch, read_import_batch
from gangplan.imports.draft import ImportAnswers, ImportTarget
from gangplan.imports.kinds import SOURCE_KINDS
from gangplan.imports.report import build_import_document
from gangplan.workspace import load_workspace
from tests.wild.corpus import Source
from tests.wild.leaves import lost
from tests.workspaces import STOCK, WIDE_CLUSTER, gangplan, write

_GRANT = "nlp: {queue: training, podSecurity: {level: privileged, reason: Jobs of other systems., until: 2099-01-31}}"  # noqa: E501
_ENDPOINTS = "egress:\n  internet: [{cidr: 0.0.0.0/0, ports: [443]}]\n"
_SLICED = "  a100-sliced: {count: 40, cpu: 124, memory: 1900Gi, gpu: {model: a100-40gb, count: 24, mig: 2g.10gb}, labels: {pool: sliced}}\ntopology:\n"  # noqa: E501
CLUSTER = (
    WIDE_CLUSTER.replace("nlp: {queue: training}", _GRANT)
    .replace("egress:\n", _ENDPOINTS)
    .replace("topology:\n", _SLICED)
    + "limits: {workers: 500}\n"
)
_ASKED = re.compile(r"--set ('[^']*'|\S+)")
_TRIES = 5
# Images of the catalog, and what a script mentions of their software.
_IMAGES = {
    "intel": r"\bimpi\b|intel.?mpi|oneapi|_impi",
    "deepspeed": r"^\s*deepspeed\s",
    "pytorch": r"torch|python|accelerate|nemo",
    "mpich": r"mpich|cray|pals|aurora|polaris",
    "openmpi": "",
}


@dataclass
class Trial:
    """The result for a source: `state` is whole, part or not; `errors` are rules and messages."""

    source: Source
    state: str = "not"
    specs: int = 0
    lost: list[str] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    errors: list[tuple[str, str]] = field(default_factory=list)
    states: Counter[str] = field(default_factory=Counter)


def value_of(name: str) -> str:
    """Return a value for a variable that a template leaves open, guessed from its name."""
    low = name.lower()
    if name.isdigit():
        return "1"
    if "image" in low:
        return "registry.example.com/team/image:1"
    if "account" in low or low.endswith("id"):
        return "123456789012"
    if re.search(
        r"gpu|node|num|count|worker|proc|replica|size|batch|port|step|parallel|world|nnode|npus|efa|ppn", low
    ):
        return "2"
    if re.search(r"mem", low):
        return "64Gi"
    if re.search(r"dir|path|root|home|prefix|scratch|mount|data|file", low):
        return "/data"
    return "value"


def compared_with(name: str, text: str) -> str:
    """Return the first value with which a script compares a variable; empty if it compares it with none."""
    found = re.search(rf"\$\{{?{re.escape(name)}\b\}}?\"?\s+==?\s+(\\\"[^\s\"]+\\\"|\"?[\w.-]+)", text)
    return found[1].replace("\\", "").removeprefix("" if "\\" in found[1] else '"') if found else ""


# What looks at a source that imports whole, in its workspace.
Look = Callable[[Batch, Path], None]


def tried(source: Source, room: str, look: Look | None = None, cluster: str = CLUSTER) -> Trial:
    """Import a source into a workspace of its own below `room`, whose platform allows privileged pods."""
    trial = Trial(source)
    with tempfile.TemporaryDirectory(dir=room) as folder:
        root = write(Path(folder), {**STOCK, "overlays/lab/cluster.yaml": cluster})
        (root / "specs/nlp/filings.yaml").unlink()
        here = Path.cwd()
        os.chdir(source.file.parent)
        try:
            batch = _import(trial, root)
        except Exception as error:  # noqa: BLE001  a crash is a result, too
            trial.errors.append(("crash", f"{type(error).__name__}: {error}"))
            trial.state = "not"
        finally:
            os.chdir(here)
        if look and trial.state == "whole":
            look(batch, root)
    return trial


def _read(trial: Trial, root: Path, given: dict[str, str], image: str, command: str) -> Batch:
    home = ImportTarget(load_workspace(root), "nlp", ImportAnswers(image, command, {}, True))
    return read_import_batch(
        SOURCE_KINDS[trial.source.kind], [Path(trial.source.file.name), *trial.source.beside], home, given
    )


def _import(trial: Trial, root: Path) -> Batch:
    given: dict[str, str] = {}
    image = command = ""
    for _ in range(_TRIES):
        batch = _read(trial, root, given, image, command)
        judge_import_batch(batch, root)
        wanted = _answers(batch, given, image, command, trial.source)
        if wanted == (given, image, command):
            break
        given, image, command = wanted
    trial.flags = [f"--set {shlex.quote(f'{name}={value}')}" for name, value in given.items()]
    trial.flags += [f"--image {image}"] * bool(image) + [f"--command {shlex.quote(command)}"] * bool(command)
    good = [one for one in batch.imported if one.is_right]
    trial.specs = len(good)
    trial.states = Counter(entry.state for one in batch.imported for entry in one.draft.work.entries())
    trial.errors = [
        (one.rule, f"{one.where.line}: {one.message}") for one in batch.everything if one.is_error
    ]
    name, text = trial.source.file.name, trial.source.file.read_text(encoding="utf-8")
    trial.lost = lost(trial.source.kind, name, text, build_import_document(batch)["imported"])
    if not good:
        return batch
    flags = [word for flag in trial.flags for word in shlex.split(flag)]
    kind = trial.source.kind
    gangplan("import", kind, trial.source.file.name, *trial.source.beside, "-C", root, "--team", "nlp", "--apply", "--keep-going", "--license-acknowledged", "-q", *flags)  # fmt: skip # noqa: E501
    for step in ("render", "validate"):
        outcome = gangplan(step, "-C", root)
        if outcome.code != 0:
            trial.errors += [
                (one.rule, f"{step}: {one.place}: {one.message}")
                for one in outcome.findings
                if one.severity == "error"
            ]
            trial.errors += [] if trial.errors else [(step, outcome.err[-300:])]
            return batch
    trial.state = "part" if trial.errors else "whole"
    return batch


def _answers(
    batch: Batch, given: dict[str, str], image: str, command: str, source: Source
) -> tuple[dict[str, str], str, str]:
    """Return the values of variables, the image and the command that findings ask for by a flag."""
    given, text = dict(given), source.file.read_text(encoding="utf-8")
    for one in batch.everything:
        help = one.help or ""
        is_open = one.is_error
        for flag in _ASKED.findall(help) if is_open else ():
            name = shlex.split(flag)[0].partition("=")[0]
            if name != "NAME":
                given.setdefault(name, compared_with(name, text) or value_of(name))
        if is_open and ("--image" in help or one.rule == "image-missing") and not image:
            image = next(name for name, sign in _IMAGES.items() if re.search(sign, text, re.IGNORECASE))
        if one.rule == "image-without-mpi" and image:
            image = "deepspeed" if "deepspeed" in one.message else "openmpi"
        if is_open and "--command" in help and not command:
            command = "python train.py"
    return given, image, command
