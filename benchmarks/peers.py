"""The same manifests made in other ways: a kustomize build per job, and jinja2 that only copies bytes."""

from __future__ import annotations

import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.measure import Run, command

_KUSTOMIZATION = "resources: [objects.yaml]\ncomponents: [../component]\n"


def kustomize_command() -> tuple[str, list[str]] | None:
    """The name and the command of the engine that gangplan would use, or None."""
    from gangplan.tools.kustomize import engine

    found = engine()
    return (found.label, list(found.command)) if found else None


def write_jobs(folder: Path, tree: Path, overlays: Path, most: int) -> list[Path]:
    """A kustomization for each of some rendered runs, beside the component of its cluster."""
    jobs = []
    for cluster in sorted(path.name for path in tree.iterdir()):
        files = sorted((tree / cluster / "runs").rglob("*.yaml"))
        step = max(1, len(files) * 3 // most)
        for file in files[::step]:
            jobs.append(_write_job(folder / cluster / file.stem, file, overlays / cluster))
    return jobs


def _write_job(job: Path, file: Path, overlay: Path) -> Path:
    """Folder of one job. A component that matches only tenants has nothing to do here and still costs."""
    job.mkdir(parents=True)
    component = job.parent / "component"
    if not component.exists():
        component.mkdir()
        for part in overlay.iterdir():
            if part.name != "cluster.yaml":
                (component / part.name).write_bytes(part.read_bytes())
    (job / "objects.yaml").write_bytes(file.read_bytes())
    (job / "kustomization.yaml").write_text(_KUSTOMIZATION, encoding="utf-8")
    return job


def build_all(words: list[str], jobs: list[Path]) -> Run:
    """One build per job, as many side by side as there are cores."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    before = time.perf_counter()
    with ThreadPoolExecutor(cores) as pool:
        runs = list(pool.map(lambda job: command([*words, str(job)]), jobs))
    wall_s = time.perf_counter() - before
    return Run(wall_s, sum(run.cpu_s for run in runs), max(run.own_mib for run in runs))


_COPY = """
import sys
from pathlib import Path
from jinja2 import Environment
tree, out = Path(sys.argv[1]), Path(sys.argv[2])
template = Environment().from_string("{% for line in lines %}{{ line }}\\n{% endfor %}")
for file in sorted(tree.rglob("*.yaml")):
    target = out / file.relative_to(tree)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(template.render(lines=file.read_text().splitlines()))
"""


def copy_by_jinja(tree: Path, out: Path) -> Run:
    """Every line of a rendered tree printed by jinja2 and written again, in one process."""
    return command([sys.executable, "-c", _COPY, str(tree), str(out)])
