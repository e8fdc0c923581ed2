"""Random plausible workspaces by seed: one sample cluster, one random team, random specs."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import yaml

from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request, Result
from gangplan.source import load_objects
from tests import plain
from tests.e2e.fidelity import features
from tests.e2e.story import ROOT, cluster_of
from tests.lab.profiles import Profile

Object = dict[str, Any]
TEAM = "research"
SWEEPS = 0.08
HEAD = {"apiVersion": "gangplan.dev/v1"}
IMAGES = ("openmpi", "openmpi-cuda", "horovod", "deepspeed", "pytorch", "intel-hpc", "mpich")
# Legal texts that careless writers of YAML, shell or templates break.
HOSTILE = (
    "1e3",
    "y",
    "no",
    "~",
    "0x1F",
    "0o17",
    "1_000",
    "12:30:45",
    "2026-11-21",
    ".inf",
    "",
    " ",
    "  leading and trailing  ",
    "two\nlines",
    "ends with a line break\n",
    "\tindented",
    'it\'s "both" quotes',
    "# no comment",
    "a: b",
    "- item",
    "{{ braces }}",
    "{% raw %}",
    "$(HOME) ${HOME} `id`",
    "back\\slash",
    "&anchor *alias !tag",
    "ñandú 数据 🚀",
    "a\u00a0b",
    "null",
    "true",
    "007",
    "-0",
    "x" * 300,
)
# In a command, gangplan refuses text that looks as if a shell should expand it, because none does.
SAID = tuple(text for text in HOSTILE if "$(" not in text)
DESCRIPTIONS = (
    "Figures of the year",
    "Größe — naïve № 5",
    "多节点训练",
    "quote \" and ' and \\",
    "two\nlines: and\n# more",
)
LABELS = ("y", "1e3", "", "on", "0123", "a.b_c-d", "A", "null", "2026-11-21", "x" * 63)
# Used where only the team matters: gangplan checks nothing without a spec.
PLAIN = {
    **HEAD,
    "kind": "TrainingJob",
    "name": "plain",
    "image": "openmpi",
    "command": ["python", "train.py"],
}
# Rows to draw from: workers, cpu, memory, gpus. All fit on some pool of each sample cluster.
SIZES = (
    (1, 4, "16Gi", 0),
    (2, 1, "4Gi", 0),
    (4, 8, "32Gi", 0),
    (16, "500m", "1Gi", 0),
    (2, 8, "64Gi", 1),
    (4, 64, "512Gi", 8),
    (3, "1.5", "2000Mi", 0),
    (8, 16, "128Gi", 4),
)


@dataclass(frozen=True, slots=True)
class Emitted:
    """The objects of one file that gangplan rendered, and the texts that they come from."""

    bodies: list[Object]
    spec: Object | None
    team: Object


@dataclass(slots=True)
class World:
    """What gangplan makes of one random workspace."""

    emitted: list[Emitted] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


def team_of(random: Random) -> Object:
    """Return a team with claims, connections and secrets that its specs may use."""
    chosen = random.sample(HOSTILE, 3)
    team: Object = {
        **HEAD,
        "kind": "Team",
        "description": random.choice(DESCRIPTIONS),
        "claims": {
            "scratch": {"accessModes": ["ReadWriteMany"]},
            "archive": {"accessModes": ["ReadOnlyMany"], "claimName": "archive.v2"},
            "notes": {"accessModes": ["ReadWriteMany"], "readOnly": True},
            "bucket-files": {"accessModes": ["ReadOnlyMany"]},
        },
        "connections": {
            "market": {"endpoint": "https://s3.example.com:9000", "bucket": "market", "secret": "market-s3"},
            "radar": {
                "endpoint": "https://s3.example.com",
                "bucket": "radar",
                "secret": "market-s3",
                "claim": "bucket-files",
                "prefix": "2026/q3",
                "region": "eu",
            },
        },
        "secrets": ["market-s3", "intel-license", "hub.token"],
    }
    if random.random() < 0.5:
        team["contact"] = random.choice(["nobody@example.com", "Zoë <zoe@example.com>", "yes"])
    if random.random() < 0.5:
        team["costCentre"] = random.choice(["cc-1", "0012", "1e3", "y", "N"])
    if random.random() < 0.5:
        team["pullSecrets"] = random.sample(["registry-pull", "other.registry", "0"], random.randint(1, 3))
    if random.random() < 0.4:
        team["defaults"] = {"env": dict(zip(("FROM_TEAM", "TEAM_2", "T3"), chosen, strict=True))}
    return team


def spec_of(random: Random, number: int) -> Object:
    """Return one training job."""
    image = random.choice(IMAGES)
    workers, cpu, memory, gpus = random.choice(SIZES)
    spec: Object = {**HEAD, "kind": "TrainingJob", "image": image, "command": _command(random, image)}
    spec |= {"workers": workers, "cpu": cpu, "memory": memory}
    if gpus:
        spec["gpus"] = gpus
    spec["name"] = random.choice(["job", "a", "x1-y2", "longer-name-of-a-job"]) + f"-{number}"
    for part in (_texts, _storage, _launch, _place, _life, features.add):
        part(random, spec)
    return features.swept(spec) if random.random() < SWEEPS else spec


def _command(random: Random, image: str) -> list[str] | str:
    if random.random() < 0.2:
        return "python train.py --rate 1e-4 --name 'two words'"
    words = ["python", "train.py", *random.sample(SAID, random.randint(0, 3))]
    if image == "pytorch":
        return words
    return ["mpirun", "-np", "{ranks}", *words] if random.random() < 0.2 else words


def _texts(random: Random, spec: Object) -> None:
    if random.random() < 0.5:
        spec["description"] = random.choice(DESCRIPTIONS)
    if random.random() < 0.6:
        names = random.sample(["STEPS", "A", "_x", "NCCL_DEBUG", "Mixed_9", "N" * 60], random.randint(1, 4))
        spec["env"] = {name: random.choice(HOSTILE) for name in names}
    if random.random() < 0.4:
        keys = random.sample(["project", "example.com/y", "A.b_c", "x", "1"], random.randint(1, 3))
        spec["labels"] = {key: random.choice(LABELS) for key in keys}


def _storage(random: Random, spec: Object) -> None:
    if random.random() < 0.4:
        choices = {
            "archive": "/data",
            "scratch": "/scratch",
            "market": "env",
            "radar": "/radar/q 3",
            "notes": "/notes",
        }
        spec["data"] = {name: choices[name] for name in random.sample(sorted(choices), random.randint(1, 3))}
    if random.random() < 0.3:
        spec["secrets"] = {"env": {"HUB_TOKEN": "hub.token/key.pem"}}
        if random.random() < 0.5:
            spec["secrets"]["files"] = {"intel-license": "/opt/licenses"}
    if random.random() < 0.3:
        spec["checkpoint"] = {"to": "scratch", "everySteps": random.choice([1, 500])}


def _launch(random: Random, spec: Object) -> None:
    if spec["image"] == "pytorch":
        return
    if spec["image"] == "intel-hpc":
        spec["mpi"] = {"licenseAcknowledged": True}
    elif random.random() < 0.3 and "mpirun" not in spec["command"]:
        spec["mpi"] = {"flags": random.sample(["--tag-output", "-v"], 1), "bindTo": "core"}
    if spec["workers"] > 1 and random.random() < 0.3:
        spec["launcher"] = {"runsRanks": True}
    elif random.random() < 0.2:
        spec["launcher"] = {"cpu": random.choice([2, "250m"]), "memory": "3Gi"}
    if not spec.get("gpus") and random.random() < 0.3:
        spec["slots"] = random.choice([1, 2, 4])


def _place(random: Random, spec: Object) -> None:
    if random.random() < 0.5:
        spec["network"] = {"posture": random.choice(["default", "restricted", "isolated"])}
        if random.random() < 0.4:
            spec["network"]["egress"] = [random.choice(["s3", "internet", "registry"])]
        if random.random() < 0.2:
            spec["network"]["rdma"] = "auto"
    if random.random() < 0.3:
        spec["placement"] = {"spread": random.choice(["pack", "spread"])}
        if random.random() < 0.4:
            spec["placement"]["topology"] = {
                random.choice(["required", "preferred"]): random.choice(["rack", "block"])
            }


def _life(random: Random, spec: Object) -> None:
    if random.random() < 0.3:
        spec["retries"] = random.randint(0, 3)
    if random.random() < 0.4:
        spec["timeout"] = random.choice(["1h30m", "24h", "90s"])
    if random.random() < 0.3:
        spec["priority"] = random.choice(["low", "normal", "high"])
    if random.random() < 0.1:
        spec["run"] = random.randint(1, 1_000_000)
    if random.random() < 0.1:
        spec["state"] = "archived"


@contextmanager
def workspace(profile: Profile) -> Iterator[Path]:
    """Yield a folder with the sample cluster of a profile, at the lab's Kubernetes version, and the sample
    images."""
    cluster = cluster_of(profile.trainer, profile.kueue)
    if cluster is None:
        raise LookupError(f"no sample cluster has the versions of profile {profile.name}")
    with tempfile.TemporaryDirectory(prefix="gangplan-fidelity-") as folder:
        root = Path(folder)
        shutil.copytree(ROOT / "images", root / "images")
        shutil.copytree(ROOT / "overlays" / cluster, root / "overlays" / cluster)
        file = root / "overlays" / cluster / "cluster.yaml"
        text = plain.load(file.read_text())
        text["versions"]["kubernetes"] = profile.kubernetes
        text["teams"] = {TEAM: text["teams"][TEAM]}
        text.pop("policies", None)  # tested elsewhere; random teams have no cost centre
        features.offer(text, profile.mpi_operator)
        file.write_text(yaml.safe_dump(text))
        catalog = root / "images" / "catalog.yaml"
        images = plain.load(catalog.read_text())
        features.supply(images["images"])
        catalog.write_text(yaml.safe_dump(images))
        (root / "specs" / TEAM).mkdir(parents=True)
        yield root


def expand(root: Path, team: Object, specs: Sequence[Object]) -> World:
    """Return everything that gangplan emits for a team and its specs, except for specs that it refuses."""
    specs = specs or [PLAIN]
    folder = root / "specs" / TEAM
    shutil.rmtree(folder)
    folder.mkdir()
    cluster = next((root / "overlays").iterdir()).name
    _write(folder / "team.yaml", {**team, "clusters": [cluster]})
    by_file = {f"{spec.get('name', 'job')}.yaml": spec for spec in specs}
    for name, spec in by_file.items():
        _write(folder / name, spec)
    world = World()
    result = preview_render(Request(root))
    bad = {finding.where.file.rpartition("/")[2]: str(finding.message) for finding in _errors(result)}
    for name, message in bad.items():
        world.refused.append(f"{name}: {message}")
        if name not in by_file:
            raise AssertionError(f"the random workspace is broken in {name}: {message}")
        (folder / name).unlink()
    if len(bad) == len(by_file):
        raise AssertionError(f"gangplan takes none of the specs: {world.refused}")
    if bad:
        result = preview_render(Request(root))
        assert not result.has_errors, result.findings
    sources = {run.path: run.unit.job.source.rpartition("/")[2] for run in result.runs}
    for path, text in sorted(result.texts.items()):
        spec = by_file[sources[path]] if path in sources else None
        world.emitted.append(Emitted(load_objects(text), spec, team))
    return world


def _errors(result: Result) -> list[Any]:
    return [finding for finding in result.findings if finding.severity.name == "ERROR"]


def _write(path: Path, content: Object) -> None:
    """Write JSON, which is YAML in which every text is quoted."""
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1), encoding="utf-8")


def random_world(root: Path, random: Random, size: int, more: Sequence[Object] = ()) -> World:
    """Return a random team with `size` random specs and some `more`, expanded."""
    team = team_of(random)
    return expand(root, team, [*(spec_of(random, number) for number in range(size)), *more])
