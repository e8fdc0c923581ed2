"""Make the same manifests with jinja2, jsonnet, Helm and kustomize, each used as its users do."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.corpus import PLACE, Corpus, documents, filled, same
from benchmarks.measure import Figure, ProgramError, Run, command

#: The variable that names a folder with other programs, searched before PATH.
FOLDER = "GANGPLAN_PEERS"
#: One build per job is measured for this many jobs and scaled to all.
SINGLE_JOBS = 40


@dataclass(frozen=True, slots=True)
class Peer:
    """A way to make the manifests: `write` writes its input into a folder, `make` makes them there.

    `output` finds the results, which are compared with gangplan's.
    """

    name: str
    write: Callable[[Corpus, Path], None]
    make: Callable[[Path], Run]
    output: Callable[[Path], Iterator[Path]]


def find(name: str) -> str | None:
    """Find a program in the folder of peers, among gangplan's own tools, or on PATH."""
    folder = os.environ.get(FOLDER)
    if folder and (found := shutil.which(name, path=folder)):
        return found
    if name == "kustomize":
        from gangplan.tools.kustomize import find_kustomize_engine

        used = find_kustomize_engine()
        return str(used.path) if used and used.name == "kustomize" else shutil.which(name)
    return shutil.which(name)


def version(program: str) -> str:
    """Return the version in the first line that a program prints about itself, or an empty string."""
    for words in (("version",), ("--version",), ("-v",)):
        done = subprocess.run([program, *words], capture_output=True, text=True, check=False, timeout=30)
        first = (done.stdout or done.stderr).partition("\n")[0]
        if found := re.search(r"\bv?(\d+\.\d+(?:\.\d+)?)", first):
            return found[1]
    return ""


def peers(used: dict[str, str], left_out: list[str]) -> Iterator[Peer]:
    """Yield the installed peers. Adds their versions to `used`, and reasons for the others to `left_out`."""
    import jinja2

    used["jinja2"] = jinja2.__version__
    yield Peer("jinja2 alone", _write_jinja, _jinja, lambda folder: (folder / "out").glob("*.yaml"))
    for name, made in {"jsonnet": _jsonnets, "helm": _helms, "kustomize": _kustomizes}.items():
        program = find(name)
        if program is None:
            left_out.append(f"{name}: not on PATH nor in the folder that {FOLDER} names")
            continue
        used[name] = version(program)
        yield from made(program)


def measured(peer: Peer, corpus: Corpus, folder: Path, times: int) -> Figure:
    """Measure a peer. Raises ProgramError if it does not make the same objects."""
    folder.mkdir()
    peer.write(corpus, folder)
    runs = tuple(peer.make(folder) for _ in range(times))
    made = [
        one for file in sorted(peer.output(folder)) for one in documents(file.read_text(encoding="utf-8"))
    ]
    part = len(made) * len(corpus.files) // max(len(corpus.objects()), 1)
    is_part = 0 < part < len(corpus.files)
    files = corpus.files[:part] if is_part else corpus.files
    if not same(_objects(files), made):
        raise ProgramError(f"{peer.name} makes other objects")
    note = f"{part} of {len(corpus.files)} timed, scaled" if is_part else ""
    return Figure(peer.name, runs, note, len(corpus.files) / len(files), len(corpus.files))


def _objects(files: tuple[Path, ...]) -> list[Any]:
    return [one for file in files for one in documents(file.read_text(encoding="utf-8"))]


_JINJA = """
import json, sys
from pathlib import Path
from jinja2 import Environment
folder = Path(sys.argv[1])
template = Environment(keep_trailing_newline=True).from_string((folder / "run.yaml.j2").read_text())
(folder / "out").mkdir(exist_ok=True)
for row in json.loads((folder / "values.json").read_text()):
    (folder / "out" / f"{row['run']}.yaml").write_text(template.render(row))
"""


def _write_jinja(corpus: Corpus, folder: Path) -> None:
    (folder / "run.yaml.j2").write_text(PLACE.sub(r"{{ \1 }}", corpus.text), encoding="utf-8")
    (folder / "values.json").write_text(json.dumps(corpus.rows), encoding="utf-8")


def _jinja(folder: Path) -> Run:
    return command([sys.executable, "-c", _JINJA, str(folder)])


def _jsonnets(program: str) -> Iterator[Peer]:
    def make(folder: Path) -> Run:
        return command([program, "-y", "main.jsonnet"], folder, out=folder / "out.yaml")

    yield Peer("jsonnet -y", _write_jsonnet, make, lambda folder: folder.glob("out.yaml"))


def _write_jsonnet(corpus: Corpus, folder: Path) -> None:
    """Write a function from a run to its objects; texts with placeholders are joined by `+`."""

    def spelled(text: re.Match[str]) -> str:
        parts = PLACE.split(text[0][1:-1])
        return " + ".join(f"v.{part}" if index % 2 else f'"{part}"' for index, part in enumerate(parts))

    content = json.dumps(documents(corpus.text), ensure_ascii=False)
    body = re.sub(
        r'"(?:[^"\\]|\\.)*"', lambda text: spelled(text) if PLACE.search(text[0]) else text[0], content
    )
    rows = json.dumps(corpus.rows)
    (folder / "main.jsonnet").write_text(
        f"local objects(v) = {body};\nlocal runs = {rows};\nstd.flatMap(objects, runs)\n", encoding="utf-8"
    )


def _helms(program: str) -> Iterator[Peer]:
    def make(folder: Path) -> Run:
        return command([program, "template", "runs", "chart"], folder, out=folder / "out.yaml")

    yield Peer("helm template", _write_chart, make, lambda folder: folder.glob("out.yaml"))


def _write_chart(corpus: Corpus, folder: Path) -> None:
    """Write one chart whose template loops over all training runs."""
    chart = folder / "chart"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: runs\nversion: 1.0.0\n", encoding="utf-8")
    (chart / "values.yaml").write_text(json.dumps({"runs": corpus.rows}), encoding="utf-8")
    body = PLACE.sub(r"{{ .\1 }}", corpus.text)
    template = "{{- range .Values.runs }}\n---\n" + body + "{{- end }}\n"
    (chart / "templates" / "runs.yaml").write_text(template, encoding="utf-8")


def _kustomizes(program: str) -> Iterator[Peer]:
    yield Peer(
        "kustomize, one build per job",
        lambda corpus, folder: _write_overlays(corpus, folder, SINGLE_JOBS),
        lambda folder: _build_all(program, folder),
        lambda folder: (folder / "out").glob("*.yaml"),
    )

    def make(folder: Path) -> Run:
        return command([program, "build", "cluster"], folder, out=folder / "out.yaml")

    yield Peer(
        "kustomize, one build per cluster",
        lambda corpus, folder: _write_overlays(corpus, folder, len(corpus.files)),
        make,
        lambda folder: folder.glob("out.yaml"),
    )


def _write_overlays(corpus: Corpus, folder: Path, most: int) -> None:
    """Write the first run's objects as the base, an overlay of JSON 6902 patches per job, and one of all."""
    (folder / "base").mkdir()
    first = filled(corpus.text, corpus.rows[0])
    (folder / "base" / "objects.yaml").write_text(first, encoding="utf-8")
    (folder / "base" / "kustomization.yaml").write_text("resources: [objects.yaml]\n", encoding="utf-8")
    forms = [(one["kind"], list(_places(one, ""))) for one in documents(corpus.text)]
    rows = corpus.rows[:most]
    for row in rows:
        patches = [
            {
                "target": {"kind": kind},
                "options": {"allowNameChange": True},
                "patch": json.dumps(
                    [{"op": "replace", "path": path, "value": filled(text, row)} for path, text in places]
                ),
            }
            for kind, places in forms
        ]
        _write_kustomization(folder / "jobs" / row["run"], ["../../base"], patches)
    _write_kustomization(folder / "cluster", [f"../jobs/{row['run']}" for row in rows], [])


def _write_kustomization(folder: Path, resources: list[str], patches: list[dict[str, Any]]) -> None:
    folder.mkdir(parents=True)
    content = {"resources": resources, "patches": patches} if patches else {"resources": resources}
    (folder / "kustomization.yaml").write_text(json.dumps(content), encoding="utf-8")


def _places(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield the JSON pointer and text of every string that differs between runs."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _places(part, f"{path}/{key.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _places(part, f"{path}/{index}")
    elif isinstance(value, str) and PLACE.search(value):
        yield path, value


def _build_all(program: str, folder: Path) -> Run:
    """Run one build per job, as many in parallel as there are cores."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    out = folder / "out"
    out.mkdir(exist_ok=True)
    before = time.perf_counter()
    with ThreadPoolExecutor(cores) as pool:
        runs = list(
            pool.map(
                lambda job: command([program, "build", str(job)], out=out / f"{job.name}.yaml"),
                sorted((folder / "jobs").iterdir()),
            )
        )
    wall_s = time.perf_counter() - before
    return Run(wall_s, sum(run.cpu_s for run in runs), max(run.own_mib for run in runs))
