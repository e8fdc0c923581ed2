"""`gangplan validate` on the sample workspace, and what kubeconform takes of it."""

from __future__ import annotations

import resource
import time
from pathlib import Path

from benchmarks.measure import Figure, Run, gangplan, repeat

_ROOT = Path(__file__).resolve().parent.parent
_SPEC = "specs/research/quickstart-cpu.yaml"


def validation(times: int) -> list[Figure]:
    """One spec, as after an edit; the whole sample; of that kubeconform; and all reports at once."""
    base = ("validate", "-C", str(_ROOT))
    gangplan(*base, _SPEC)  # the first start compiles modules and asks tools for their versions
    formats = [f"--format={name}=/dev/null" for name in ("json", "sarif", "junit", "gitlab", "markdown")]
    figures = [
        repeat("one spec", times, lambda: gangplan(*base, _SPEC)),
        repeat("the whole sample", times, lambda: gangplan(*base)),
        repeat("the same, five reports", times, lambda: gangplan(*base, *formats)),
    ]
    judge, _ = _kubeconform()
    if judge:
        figures.append(repeat(f"{judge} of it", times, lambda: _kubeconform()[1]))
    return figures


def _kubeconform() -> tuple[str, Run]:
    """The second opinion alone on the committed tree: the judge's name, empty without one, and its run."""
    from gangplan.pipeline.second_opinion import second_opinion

    before, cpu = time.perf_counter(), _cpu_s()
    judge, _ = second_opinion(_ROOT, _ROOT / "rendered")
    return judge, Run(time.perf_counter() - before, _cpu_s() - cpu, _peak_mib())


def _cpu_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
