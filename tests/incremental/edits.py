"""Random edits of a workspace; after each, a command must say the same with a cache as without one."""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests import workspaces

TEAM = workspaces.TEAM.replace("clusters: [lab]", "clusters: [lab, hall]")
CLUSTER = workspaces.CLUSTER.replace(
    "  nlp: {queue: training}", "  nlp: {queue: training}\n  vision: {queue: training}"
)
WAIVER = """\
apiVersion: gangplan.dev/v1
kind: Waiver
rule: run-too-long
scope: {team: nlp}
reason: It trains for two weeks and nothing is lost.
approver: platform@example.com
expires: "2027-01-31"
"""
FILES = {
    "images/catalog.yaml": workspaces.CATALOG,
    "overlays/lab/cluster.yaml": CLUSTER,
    "overlays/lab/kustomization.yaml": workspaces.KUSTOMIZATION,
    "overlays/hall/cluster.yaml": CLUSTER.replace("eu-central", "eu-west"),
    "specs/nlp/team.yaml": TEAM,
    "specs/vision/team.yaml": TEAM,
    **{
        f"specs/{team}/{job}.yaml": workspaces.SPEC
        for team in ("nlp", "vision")
        for job in ("filings", "notes", "more")
    },
}
SPECS = [file for file in FILES if file.startswith("specs/") and not file.endswith("team.yaml")]
LINES = [
    "workers: 2",
    "gpus: 1",
    "run: 2",
    "run: 3",
    "retries: 2",
    "state: archived",
    "state: stopped",
    "keep: true",
    "state: paused",
    "priority: high",
    "timeout: 400h",
    "name: twin",
    "name: filings",
    "workers: four",
    "unknown: 1",
    "description: a comment that nobody judges",
    "checkpoint: {to: filings, everySteps: 100}",
    "env: {AWS_SECRET: AKIAIOSFODNN7EXAMPLE}",
    "env: {SEED: 7}",
    "clusters: [lab]",
    "clusters: [nowhere]",
    "image: horovod",
    "image: nothing",
]
PATCH = """\
- target: {kind: TrainJob}
  patch: |-
    - {op: add, path: /metadata/labels/example.com~1hall, value: "VALUE"}
"""

Edit = Callable[[Path, random.Random], None]


def _line(root: Path, chance: random.Random) -> None:
    """Set, change or remove a field in one spec or in several."""
    for file in chance.sample(SPECS, chance.choice((1, 1, 3))):
        path = root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text() if path.exists() else workspaces.SPEC
        line = chance.choice(LINES)
        key = line.split(":")[0]
        kept = [one for one in text.splitlines() if not one.startswith(f"{key}:")]
        if chance.random() < 0.3:
            kept = workspaces.SPEC.splitlines()
        path.write_text("\n".join([*kept, line]) + "\n")


def _plain(root: Path, chance: random.Random) -> None:
    """Restore a spec as it was in the beginning, or remove it."""
    path = root / chance.choice(SPECS)
    if chance.random() < 0.3:
        path.unlink(missing_ok=True)
    else:
        path.write_text(workspaces.SPEC)


def _cluster(root: Path, chance: random.Random) -> None:
    path = root / f"overlays/{chance.choice(('lab', 'hall'))}/cluster.yaml"
    old, new = chance.choice(
        (
            ("count: 4, cpu: 124", "count: 2, cpu: 124"),
            ("count: 2, cpu: 124", "count: 4, cpu: 124"),
            ("queue: training}", "queue: training, weight: 2}"),
            (", weight: 2}", "}"),
            ("location: on-prem", "location: cloud"),
            ("location: cloud", "location: on-prem"),
        )
    )
    path.write_text(path.read_text().replace(old, new, 1))


def _patch(root: Path, chance: random.Random) -> None:
    path = root / f"overlays/{chance.choice(('lab', 'hall'))}/kustomization.yaml"
    text = PATCH.replace("VALUE", str(chance.randrange(3))) if chance.random() < 0.7 else ""
    path.write_text(workspaces.KUSTOMIZATION + text)


def _waiver(root: Path, chance: random.Random) -> None:
    path = root / "policies/waivers/long.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and chance.random() < 0.5:
        path.unlink()
    else:
        path.write_text(WAIVER)


def _rendered(root: Path, chance: random.Random) -> None:
    """Edit, remove or add a rendered file."""
    files = sorted((root / "rendered").rglob("*.yaml"))
    if not files:
        return
    path = chance.choice(files)
    what = chance.randrange(5)
    if what == 0:
        path.unlink()
    elif what == 1:
        path.write_text(path.read_text().replace("true", "false", 1))
    elif what == 2:
        path.with_name(f"{path.stem[:-8]}01234567.yaml").write_bytes(path.read_bytes())
    elif what == 3:
        path.with_name("stray.yaml").write_text("kind: Pod\n")
    else:
        shutil.rmtree(path.parent)


def _clean(root: Path, _: random.Random) -> None:
    for path in sorted((root / "rendered").rglob("stray.yaml")):
        path.unlink()


def _cache(root: Path, chance: random.Random) -> None:
    """Damage the cache, or remove it."""
    files = sorted(path for path in (root / ".gangplan/cache").rglob("*") if path.is_file())
    if not files or chance.random() < 0.3:
        shutil.rmtree(root / ".gangplan", ignore_errors=True)
        return
    path = chance.choice(files)
    data = bytearray(path.read_bytes())
    if data:
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(bytes(data[: chance.randrange(len(data) + 1)] if chance.random() < 0.3 else data))


EDITS: tuple[tuple[int, Edit], ...] = (
    (8, _line),
    (3, _plain),
    (2, _cluster),
    (1, _patch),
    (1, _waiver),
    (3, _rendered),
    (1, _clean),
    (1, _cache),
)
COMMANDS = (
    ("validate", "--format", "json", "--today", "2026-11-01"),
    ("validate", "--today", "2027-11-01"),
    ("render",),
    ("render", "--check", "--format", "json"),
    ("render", "--team", "nlp"),
    ("validate", "--cluster", "hall"),
    ("validate", "specs/nlp"),
)


def story(folder: Path, seed: int, steps: int) -> None:
    """Edit and ask repeatedly: two workspaces of the same files, one with a cache, must say the same."""
    chance = random.Random(seed)
    cached, plain = workspaces.write(folder / "cached", FILES), workspaces.write(folder / "plain", FILES)
    edits = [edit for weight, edit in EDITS for _ in range(weight)]
    for step in range(steps):
        for _ in range(chance.choice((0, 1, 1, 2))):
            edit, own = chance.choice(edits), chance.randrange(1 << 30)
            edit(cached, random.Random(own))
            if edit is not _cache:
                edit(plain, random.Random(own))
        command, *flags = chance.choice(COMMANDS)
        named = [one for one in flags if (cached / one).exists()]
        flags = [one for one in flags if one not in named]
        with_it = workspaces.gangplan(command, "-C", cached, *flags, *named)
        without = workspaces.gangplan(command, "-C", plain, "--no-cache", *flags, *named)
        where = f"seed {seed}, step {step}: {command} {flags} {named}"
        assert _bare(with_it, cached) == _bare(without, plain), where
        assert workspaces.rendered(cached) == workspaces.rendered(plain), where


def _bare(outcome: workspaces.Outcome, root: Path) -> tuple[int, str, str]:
    return outcome.code, outcome.out.replace(str(root), "."), outcome.err.replace(str(root), ".")


def main() -> int:
    """Play stories of 30 steps from a seed on: `python -m tests.incremental.edits FIRST COUNT`."""
    first, count = map(int, sys.argv[1:])
    failed = 0
    for seed in range(first, first + count):
        with tempfile.TemporaryDirectory() as folder:
            try:
                story(Path(folder), seed, 30)
            except AssertionError as different:
                failed += 1
                print(str(different)[:3000], flush=True)
    print(f"{count} stories of 30 steps, {failed} with a difference")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
