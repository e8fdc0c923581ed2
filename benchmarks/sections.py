"""Measure what users wait for: starts, everything new, nothing changed, one spec changed, a pull request."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path

from benchmarks.measure import Figure, Run, bare, command, gangplan, repeat
from benchmarks.results import Section
from benchmarks.workspace import CLUSTERS, SPECS_PER_TEAM, write_workspace

SEED = 1
#: Specs of the small workspace whose cost is subtracted, so that only the cost of the runs remains.
FEW = 5
#: Runs of each row that takes less than a second.
SHORT = 7


def start(folder: Path) -> Section:
    """Measure single commands, mostly without a cache: what an editor and a hook wait for."""
    workspace = folder / "start"
    spec = write_workspace(workspace, 5, SEED)[0]
    here, one = ("-C", str(workspace)), ("--cluster", CLUSTERS[0])
    commands = {
        "--version": ("--version",),
        "--help": ("--help",),
        "explain RULE": ("explain", "object-invalid"),
        "render, 1 spec on 1 cluster": ("render", "--no-cache", "--output", "-", *one, *here, spec),
        "validate, 1 spec on 1 cluster": ("validate", "--no-cache", *one, *here, spec),
        "validate, 1 spec on 3 clusters": ("validate", "--no-cache", *here, spec),
        "plan, 1 spec on 3 clusters": ("plan", "--no-cache", *here, spec),
        "validate again, answered": ("validate", *here, spec),
    }
    figures = [_start(name, words) for name, words in commands.items()]
    about = f"A workspace of 5 specs on {len(CLUSTERS)} clusters."
    return Section("Start", about, (bare(20), *figures))


def _start(name: str, words: tuple[str, ...]) -> Figure:
    program = [sys.executable, "-m", "gangplan", *words]
    command(program)  # the first start compiles modules and runs tools for their versions
    return repeat(name, SHORT, lambda: command(program))


class Work:
    """The rows about one workspace of many specs; each row starts where the previous one ended."""

    def __init__(self, folder: Path, specs: int, times: int) -> None:
        self.root, self.times = folder, times
        teams = -(-specs // SPECS_PER_TEAM)
        write_workspace(folder, specs, SEED, teams=teams)
        self.few = folder.with_name("few")
        write_workspace(self.few, FEW, SEED, teams=teams)
        self.spec = next(folder.glob("specs/*/t*-0*.yaml"))
        self.units = (specs - FEW) * len(CLUSTERS)
        self.numbers = count(2)

    def new(self, command_name: str, *words: str) -> Figure:
        """Measure a command without a cache; render also starts without a rendered tree."""

        def once() -> Run:
            if command_name == "render":
                shutil.rmtree(self.root / "rendered", ignore_errors=True)
            return self.run(command_name, "--no-cache", *words)

        base = gangplan(command_name, "--no-cache", "-C", str(self.few)).cpu_s
        note = f"{base:.2f} s of cpu with {FEW} specs"
        figure = repeat(f"{command_name}, everything new", self.times, once, note, self.units)
        return replace(figure, base_cpu_s=base)

    def forgotten(self, command_name: str) -> Figure:
        """Measure the first command with an empty cache, which stores all results."""

        def once() -> Run:
            shutil.rmtree(self.root / ".gangplan", ignore_errors=True)
            return self.run(command_name)

        return repeat(f"{command_name}, the first with a cache", 1, once)

    def same(self, command_name: str) -> list[Figure]:
        """Measure an unchanged workspace: first with cached results, then with the cached answer."""

        def kept() -> Run:
            shutil.rmtree(self.root / ".gangplan" / "cache" / "answers", ignore_errors=True)
            return self.run(command_name)

        self.run(command_name)
        return [
            repeat(f"{command_name}, nothing changed, results taken", self.times, kept),
            repeat(f"{command_name}, nothing changed, answered", SHORT, self.once(command_name)),
        ]

    def changed(self, command_name: str) -> list[Figure]:
        """Measure one changed spec: a command about all specs, then about this one only."""

        def touched(*words: str) -> Callable[[], Run]:
            def once() -> Run:
                lines = self.spec.read_text(encoding="utf-8").splitlines(keepends=True)
                kept = "".join(line for line in lines if not line.startswith("run:"))
                self.spec.write_text(f"{kept}run: {next(self.numbers)}\n", encoding="utf-8")
                return self.run(command_name, *words)

            return once

        return [
            repeat(f"{command_name}, one spec changed", self.times, touched()),
            repeat(f"{command_name}, one spec changed and named", self.times, touched(str(self.spec))),
        ]

    def once(self, command_name: str) -> Callable[[], Run]:
        """Return a function that runs the command."""
        return lambda: self.run(command_name)

    def run(self, command_name: str, *words: str) -> Run:
        """Run gangplan on this workspace."""
        return gangplan(command_name, "-C", str(self.root), *words)


def work(folder: Path, specs: int, times: int) -> Section:
    """Measure rendering and validating a workspace: everything new, nothing changed, one spec changed."""
    main = Work(folder / "work", specs, times)
    figures = [bare(), main.new("render"), main.new("validate")]
    for name in ("render", "validate"):
        figures += [main.forgotten(name), *main.same(name), *main.changed(name)]
    shutil.rmtree(main.root)
    shutil.rmtree(main.few)
    teams = -(-specs // SPECS_PER_TEAM)
    about = (
        f"{specs} specs on {len(CLUSTERS)} clusters, {specs * len(CLUSTERS)} runs of {teams} "
        "teams. `validate` is "
        "all gates, every policy and kubeconform. Everything new: with `--no-cache`."
    )
    told = tuple(
        f"{figure.name}: {figure.cpu_s / figures[0].cpu_s:.1f} × bare, "
        f"{new.cpu_s / figure.cpu_s:.0f} times less than everything new."
        for new, figure in ((one, two) for one in figures[1:3] for two in figures[3:])
        if figure.name.startswith(new.name.split(",")[0]) and "answered" in figure.name
    )
    return Section("Everything new, nothing changed, one spec changed", about, tuple(figures), told)


#: Specs that a pull request changes.
EDITED = 3


def review(folder: Path, specs: int, times: int) -> Section:
    """Measure `plan --base`: the base as Git has it, compared with the workspace as it is."""
    root = folder / "review"
    files = write_workspace(root, specs, SEED)
    gangplan("render", "-C", str(root))
    (root / ".gitignore").write_text(".gangplan/\n", encoding="utf-8")
    git = ["git", "-C", str(root), "-c", "user.name=bench", "-c", "user.email=bench@example.com"]
    for words in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-q", "-m", "base")):
        command([*git, *words])
    for file in files[:: max(1, len(files) // EDITED)][:EDITED]:
        path = root / file
        path.write_text(f"{path.read_text(encoding='utf-8')}run: 2\n", encoding="utf-8")

    def once(*words: str) -> Callable[[], Run]:
        return lambda: gangplan("plan", "-C", str(root), "--base", "main", *words)

    forgotten = repeat("plan --base, everything new", 1, once("--no-cache"))
    figures = [bare(), forgotten, repeat("plan --base, three specs changed", times, once())]
    gangplan("render", "-C", str(root))
    figures.append(repeat("plan --base, three specs changed and rendered", times, once()))
    figures.append(repeat("plan --base as Markdown", times, once("--format", "markdown")))
    shutil.rmtree(root)
    about = (
        f"{specs} specs on {len(CLUSTERS)} clusters, rendered and committed; {EDITED} specs changed since."
    )
    slowest = max(one.cpu_s for one in figures[2:]) / figures[0].cpu_s
    told = (f"With what earlier commands found out: {slowest:.0f} × bare.",)
    return Section("A pull request", about, tuple(figures), told, {"review": slowest})
