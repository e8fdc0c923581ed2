"""The files of a workspace by what they are, each read when it is asked for, and only once.

Nothing here is judged: a file that is wrong yields what can be read of it, and `validate` says what is wrong.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from gangplan.errors import UserError
from gangplan.model import syncing
from gangplan.source import MOST_BYTES, ManifestError, load_objects
from gangplan.spec.listing import FILES_FOLDER
from gangplan.spec.near import nearest
from gangplan.spec.root import OVERLAYS, SPECS

RENDERED = "rendered"
Block = dict[str, Any]
# Annotations of runs by which engines know their state (generators/common.py, gitops/record.py).
_STOPPED = b"gangplan.dev/state: stopped"
_ARCHIVED = f"{syncing.SERVER_SIDE}: Ignore".encode()
# Of a schedule, and of a template of runs that is all that Git has of them (generators/schedules.py, after.py).
_SCHEDULE, _SUSPENDED, _TEMPLATE = b"\nkind: CronJob\n", b"\n  suspend: true\n", b"\n  run.yaml: |\n"


class Files:
    """A workspace at `root`. `teams` and `clusters` are the names asked for; empty means all."""

    def __init__(self, root: Path, teams: tuple[str, ...] = (), clusters: tuple[str, ...] = ()) -> None:
        self.root = root
        self.unread: list[str] = []
        self._check("team", teams, self.team_names)
        self._check("cluster", clusters, self.cluster_names)
        self.wanted_teams, self.wanted_clusters = teams, clusters

    def _check(self, what: str, names: tuple[str, ...], known: list[str]) -> None:
        for name in names:
            if name not in known:
                raise UserError(f"there is no {what} '{name}'", nearest(name, known))

    @cached_property
    def team_names(self) -> list[str]:
        """The folders in specs/."""
        return folders(self.root / SPECS)

    @cached_property
    def cluster_names(self) -> list[str]:
        """The folders in overlays/."""
        return folders(self.root / OVERLAYS)

    @cached_property
    def all_teams(self) -> Mapping[str, Block]:
        """Every team's file."""
        return {name: self.load(f"{SPECS}/{name}/team.yaml") for name in self.team_names}

    @cached_property
    def all_clusters(self) -> Mapping[str, Block]:
        """Every cluster's file."""
        return {name: self.load(f"{OVERLAYS}/{name}/cluster.yaml") for name in self.cluster_names}

    @property
    def teams(self) -> dict[str, Block]:
        """The files of the teams asked for; with clusters asked for, of those that may run there."""
        names = self.wanted_teams or tuple(self.team_names)
        if self.wanted_clusters:
            there = {
                team for name in self.wanted_clusters for team in block(self.all_clusters[name], "teams")
            }
            names = tuple(name for name in names if name in there)
        return {name: self.all_teams[name] for name in names}

    @property
    def clusters(self) -> dict[str, Block]:
        """The files of the clusters asked for; with teams asked for, of those where one of them may run."""
        names = self.wanted_clusters or tuple(self.cluster_names)
        return {
            name: self.all_clusters[name]
            for name in names
            if not self.wanted_teams or set(block(self.all_clusters[name], "teams")) & set(self.wanted_teams)
        }

    def home_of(self, team: str) -> list[str]:
        """The clusters where a spec of the team runs that names none: the team's choice, else its only one."""
        chosen = self.all_teams[team].get("clusters")
        if isinstance(chosen, list):
            return [str(one) for one in chosen]
        there = [name for name, file in self.all_clusters.items() if team in block(file, "teams")]
        return there if len(there) == 1 else []

    def load(self, file: str) -> Block:
        """The mapping in a file, empty where there is none; then the file is in `unread`."""
        try:
            with (self.root / file).open("rb") as stream:
                documents = load_objects(stream.read(MOST_BYTES))
        except (OSError, ManifestError):
            documents = []
        if len(documents) != 1:
            self.unread.append(file)
            return {}
        return documents[0]


def folders(parent: Path) -> list[str]:
    """The names of the folders in a folder, hidden ones aside; none where it is missing."""
    try:
        with os.scandir(parent) as entries:
            return sorted(
                entry.name
                for entry in entries
                if entry.is_dir(follow_symlinks=False) and not entry.name.startswith(".")
            )
    except OSError:
        return []


def contents(path: str) -> bytes:
    """The bytes of a file up to the limit of a spec; none where it cannot be read."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        data = os.read(handle, MOST_BYTES)
    except OSError:
        return b""
    finally:
        os.close(handle)
    return data


def yaml_files(folder: str, start: str) -> Iterator[str]:
    """Every plain *.yaml file below a folder that is not hidden, and none of those that specs mount; its path
    begins with `start`."""
    try:
        with os.scandir(folder) as listed:
            entries = sorted(listed, key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        path = f"{start}/{entry.name}"
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False) and entry.name != FILES_FOLDER:
            yield from yaml_files(f"{folder}/{entry.name}", path)
        elif entry.name.endswith(".yaml") and entry.is_file(follow_symlinks=False):
            yield path


def block(body: Block, name: str) -> Block:
    """A mapping in a mapping; empty where there is none."""
    found = body.get(name)
    return found if isinstance(found, dict) else {}


def blocks(body: Block, name: str) -> dict[str, Block]:
    """Mappings by name in a mapping; what is none counts as empty."""
    return {key: value if isinstance(value, dict) else {} for key, value in block(body, name).items()}


def entries(body: Block, name: str) -> list[Any]:
    """A list in a mapping; empty where there is none."""
    found = body.get(name)
    return found if isinstance(found, list) else []


def state_of_run(run: bytes) -> str:
    """What a rendered run is for Git: applied as it is, created by a schedule or when others are complete."""
    if _ARCHIVED in run:
        return "archived"
    if _SCHEDULE in run:
        return "stopped" if _SUSPENDED in run else "scheduled"
    if _STOPPED in run:
        return "stopped"
    return "waiting" if _TEMPLATE in run else "active"
