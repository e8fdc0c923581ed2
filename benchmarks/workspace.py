"""Write a random workspace of a given size, with the sample's clusters and teams of its own.

The same arguments write the same bytes. Every spec runs on every cluster. More than three clusters are copies
of the sample's three, under other names.
"""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

SAMPLE = Path(__file__).resolve().parent.parent
CLUSTERS = ("eu-airgap", "onprem-a100", "us-cloud")
#: Specs per team, if the number of teams is not given.
SPECS_PER_TEAM = 50
# The teams of a sample cluster, which ours replace.
_TEAMS = re.compile(r"^teams:\n((?:  .*\n)+)", re.MULTILINE)
_QUEUE = re.compile(r"queue: [a-z0-9-]+")
_LIMITS = re.compile(r"^limits: \{(.*)\}\n", re.MULTILINE)
#: The limit of runs per team and cluster: more than any row of the benchmarks needs.
MOST_RUNS = 100_000

Lines = list[str]


def write_workspace(
    folder: Path, specs: int, seed: int = 1, clusters: int = len(CLUSTERS), teams: int | None = None
) -> list[str]:
    """Write a workspace and return its spec files, sorted. Without `teams`, one team for each 50 specs."""
    chance = random.Random(seed)
    names = [f"team-{number:03}" for number in range(teams or -(-specs // SPECS_PER_TEAM))]
    sites = cluster_names(clusters)
    (folder / "images").mkdir(parents=True)
    shutil.copy(SAMPLE / "images" / "catalog.yaml", folder / "images")
    for index, site in enumerate(sites):
        shutil.copytree(SAMPLE / "overlays" / CLUSTERS[index % len(CLUSTERS)], folder / "overlays" / site)
        _set_teams(folder / "overlays" / site / "cluster.yaml", names)
    for number, team in enumerate(names):
        _write(folder / "specs" / team / "team.yaml", _team(number, sites))
    files = [f"specs/{names[index % len(names)]}/{_name(index, chance)}.yaml" for index in range(specs)]
    for file in files:
        _write(folder / file, spec_lines(chance))
    return sorted(files)


def cluster_names(count: int) -> tuple[str, ...]:
    """Return the names of so many clusters: the sample's, then the same names with numbers."""
    rounds = [f"-{number}" if number > 1 else "" for number in range(1, 2 + count // len(CLUSTERS))]
    return tuple(f"{name}{suffix}" for suffix in rounds for name in CLUSTERS)[:count]


def spec_lines(chance: random.Random) -> Lines:
    """Return a spec of a random framework that is valid on every cluster."""
    kind = chance.choices(list(_FRAMEWORKS), [weight for weight, _ in _FRAMEWORKS.values()])[0]
    lines = ["apiVersion: gangplan.dev/v1", "kind: TrainingJob", *_FRAMEWORKS[kind][1](chance)]
    if chance.random() < 0.5:
        lines.append(f"description: Trial {chance.randrange(10_000)} of the {kind} series")
    if chance.random() < 0.5:
        lines.append(f"data: {{corpus: /data/{chance.choice(('a', 'b', 'c'))}}}")
    if chance.random() < 0.4:
        lines.append(f"checkpoint: {{to: scratch, everySteps: {chance.choice((100, 500, 1000))}}}")
    if chance.random() < 0.3:
        lines.append(f"env: {{SEED: {chance.randrange(1 << 16)}, MODE: {chance.choice(('fast', 'exact'))}}}")
    if chance.random() < 0.2:
        lines.append(f"network: {{posture: {chance.choice(('default', 'restricted', 'isolated'))}}}")
    if chance.random() < 0.2:
        lines.append(f"retries: {chance.randint(1, 3)}")
    if chance.random() < 0.2:
        lines.append(f"timeout: {chance.randint(1, 24)}h")
    return lines


def _deepspeed(chance: random.Random) -> Lines:
    words = ["python", "train.py", "--deepspeed", "ds.json", "--lr", f"{chance.randint(1, 9)}e-4"]
    return ["image: deepspeed", _command(words), *_gpu_size(chance)]


def _horovod(chance: random.Random) -> Lines:
    words = ["horovodrun", "-np", "{ranks}", "python", "train.py", "--epochs", str(chance.randint(1, 90))]
    return ["image: horovod", f"command: {' '.join(words)}", *_gpu_size(chance)]


def _torch(chance: random.Random) -> Lines:
    words = ["python", "train.py", "--seed", str(chance.randrange(1000))]
    return ["image: pytorch", _command(words), *_gpu_size(chance)]


def _open_mpi(chance: random.Random) -> Lines:
    words = ["/opt/risk/montecarlo", "--paths", str(chance.randint(1, 9) * 1000)]
    return ["image: openmpi", _command(words), *_cpu_size(chance)]


def _mpich(chance: random.Random) -> Lines:
    words = ["/opt/solver/flow", "--case", f"wing-{chance.randrange(100)}.cfg"]
    return ["image: mpich", _command(words), *_cpu_size(chance)]


def _intel(chance: random.Random) -> Lines:
    words = ["/opt/hpl/xhpl", "--size", str(chance.randint(10, 99) * 1000)]
    return ["image: intel-hpc", _command(words), *_cpu_size(chance), "mpi: {licenseAcknowledged: true}"]


# The weight of each framework, and the function for its first lines.
_FRAMEWORKS: dict[str, tuple[int, Callable[[random.Random], Lines]]] = {
    "DeepSpeed": (3, _deepspeed),
    "Horovod": (2, _horovod),
    "PyTorch": (3, _torch),
    "Open MPI": (2, _open_mpi),
    "MPICH": (1, _mpich),
    "Intel MPI": (1, _intel),
}


def _command(words: list[str]) -> str:
    return f"command: [{', '.join(words)}]"


def _gpu_size(chance: random.Random) -> Lines:
    gpus = chance.choice((1, 2, 4, 8))
    # The smallest of the sample's clusters has 64 GPUs of a model: a larger run is refused.
    return [
        f"workers: {min(chance.choice((2, 4, 8, 16)), 64 // gpus)}",
        f"gpus: {gpus}",
        f"cpu: {8 * gpus}",
        f"memory: {chance.choice((32, 64))}Gi",
    ]


def _cpu_size(chance: random.Random) -> Lines:
    slots = chance.choice((1, 4, 8))
    workers = chance.choice((2, 4, 8, 16))
    return [f"workers: {workers}", f"slots: {slots}", f"cpu: {slots}", f"memory: {chance.randint(4, 32)}Gi"]


def _team(number: int, clusters: Sequence[str]) -> Lines:
    return [
        "apiVersion: gangplan.dev/v1",
        "kind: Team",
        f"costCentre: cc-{4000 + number}",
        f"contact: team-{number:03}@example.com",
        f"clusters: [{', '.join(clusters)}]",
        "claims:",
        "  corpus: {accessModes: [ReadOnlyMany]}",
        "  scratch: {accessModes: [ReadWriteMany]}",
        "pullSecrets: [registry-pull]",
        "defaults: {env: {NCCL_DEBUG: WARN}}",
    ]


def _name(index: int, chance: random.Random) -> str:
    return f"{chance.choice(('train', 'tune', 'solve', 'sweep'))}-{index:05}"


def _set_teams(file: Path, teams: list[str]) -> None:
    """Put every team on this cluster, all in the queue of the sample's first team, with the same rights.

    The limit of runs is raised: the larger workspaces have more than 500 in a namespace.
    """
    text = file.read_text(encoding="utf-8")
    found = _TEAMS.search(text)
    if found is None:
        raise SystemExit(f"overlays/{file.parent.name}/cluster.yaml names no teams")
    queue = _QUEUE.search(found[1])
    if queue is None:
        raise SystemExit(f"the first team of overlays/{file.parent.name}/cluster.yaml names no queue")
    ours = "".join(f"  {team}: {{{queue[0]}}}\n" for team in teams)
    limits = _LIMITS.search(text)
    kept = f"{limits[1]}, " if limits else ""
    raised = f"limits: {{{kept}objects: {{runs: {MOST_RUNS}}}}}\n"
    text = _LIMITS.sub("", _TEAMS.sub(f"teams:\n{ours}", text))
    file.write_text(text.rstrip("\n") + f"\n{raised}", encoding="utf-8")


def _write(file: Path, lines: Lines) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
