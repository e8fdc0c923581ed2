"""The files of a workspace, each read when it is first needed, and only once.

Nothing is validated here: what can be read of a wrong file is returned, and `validate` reports what is wrong.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from gangplan.errors import UserError
from gangplan.model import syncing
from gangplan.source import MAX_DOCUMENT_BYTES, ManifestError, load_objects
from gangplan.spec.listing import FILES_FOLDER
from gangplan.spec.near import suggest_nearest
from gangplan.spec.root import OVERLAYS, SPECS

Block = dict[str, Any]
# Annotations of runs that tell engines their state (generators/common.py, gitops/record.py).
_STOPPED = b"gangplan.dev/state: stopped"
_ARCHIVED = f"{syncing.FLUX_SERVER_SIDE}: Ignore".encode()
# Lines of a schedule, and of a template of runs if Git has nothing else of them (generators/schedules.py,
# after.py).
_SCHEDULE, _SUSPENDED, _TEMPLATE = b"\nkind: CronJob\n", b"\n  suspend: true\n", b"\n  run.yaml: |\n"


class WorkspaceFiles:
    """The files of a workspace at `root`. `teams` and `clusters` are the requested names; empty means all."""

    def __init__(self, root: Path, teams: tuple[str, ...] = (), clusters: tuple[str, ...] = ()) -> None:
        self.root = root
        self.unread: list[str] = []
        self._check("team", teams, self.team_names)
        self._check("cluster", clusters, self.cluster_names)
        self.wanted_teams, self.wanted_clusters = teams, clusters

    def _check(self, what: str, names: tuple[str, ...], known: list[str]) -> None:
        for name in names:
            if name not in known:
                raise UserError(f"there is no {what} '{name}'", suggest_nearest(name, known))

    @cached_property
    def team_names(self) -> list[str]:
        """The folders in specs/."""
        return list_visible_subfolders(self.root / SPECS)

    @cached_property
    def cluster_names(self) -> list[str]:
        """The folders in overlays/."""
        return list_visible_subfolders(self.root / OVERLAYS)

    @cached_property
    def all_teams(self) -> Mapping[str, Block]:
        """The file of every team."""
        return {name: self.load(f"{SPECS}/{name}/team.yaml") for name in self.team_names}

    @cached_property
    def all_clusters(self) -> Mapping[str, Block]:
        """The file of every cluster."""
        return {name: self.load(f"{OVERLAYS}/{name}/cluster.yaml") for name in self.cluster_names}

    @property
    def teams(self) -> dict[str, Block]:
        """The files of the requested teams; if clusters are requested, only of teams that may run there."""
        names = self.wanted_teams or tuple(self.team_names)
        if self.wanted_clusters:
            there = {
                team for name in self.wanted_clusters for team in get_block(self.all_clusters[name], "teams")
            }
            names = tuple(name for name in names if name in there)
        return {name: self.all_teams[name] for name in names}

    @property
    def clusters(self) -> dict[str, Block]:
        """The files of the requested clusters; if teams are requested, only of clusters where one of them may
        run."""
        names = self.wanted_clusters or tuple(self.cluster_names)
        return {
            name: self.all_clusters[name]
            for name in names
            if not self.wanted_teams
            or set(get_block(self.all_clusters[name], "teams")) & set(self.wanted_teams)
        }

    def home_of(self, team: str) -> list[str]:
        """Return the clusters where a spec that names none runs: the team's choice, else its only cluster."""
        chosen = self.all_teams[team].get("clusters")
        if isinstance(chosen, list):
            return [str(one) for one in chosen]
        there = [name for name, file in self.all_clusters.items() if team in get_block(file, "teams")]
        return there if len(there) == 1 else []

    def load(self, file: str) -> Block:
        """Return the mapping in a file. If there is none, return an empty one and add the file to
        `unread`."""
        try:
            with (self.root / file).open("rb") as stream:
                documents = load_objects(stream.read(MAX_DOCUMENT_BYTES))
        except (OSError, ManifestError):
            documents = []
        if len(documents) != 1:
            self.unread.append(file)
            return {}
        return documents[0]


def list_visible_subfolders(parent: Path) -> list[str]:
    """Return the names of the folders in a folder, without hidden ones; none if it does not exist."""
    try:
        with os.scandir(parent) as entries:
            return sorted(
                entry.name
                for entry in entries
                if entry.is_dir(follow_symlinks=False) and not entry.name.startswith(".")
            )
    except OSError:
        return []


def read_contents(path: str) -> bytes:
    """Read the bytes of a file, up to the limit of a spec; empty if it cannot be read."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        data = os.read(handle, MAX_DOCUMENT_BYTES)
    except OSError:
        return b""
    finally:
        os.close(handle)
    return data


def list_workspace_yaml_files(folder: str, start: str) -> Iterator[str]:
    """Yield the path of every plain *.yaml file below a folder, except hidden files and those that specs
    mount.

    Each path begins with `start`.
    """
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
            yield from list_workspace_yaml_files(f"{folder}/{entry.name}", path)
        elif entry.name.endswith(".yaml") and entry.is_file(follow_symlinks=False):
            yield path


def get_block(body: Block, name: str) -> Block:
    """Return a mapping in a mapping; empty if there is none."""
    found = body.get(name)
    return found if isinstance(found, dict) else {}


def get_named_blocks(body: Block, name: str) -> dict[str, Block]:
    """Return the mappings in a mapping, by name; anything else counts as empty."""
    return {key: value if isinstance(value, dict) else {} for key, value in get_block(body, name).items()}


def get_list(body: Block, name: str) -> list[Any]:
    """Return a list in a mapping; empty if there is none."""
    found = body.get(name)
    return found if isinstance(found, list) else []


def read_rendered_run_state(run: bytes) -> str:
    """Return the state of a rendered run in Git: active, waiting, scheduled, stopped or archived.

    A waiting run is created when others are complete, a scheduled one by its schedule.
    """
    if _ARCHIVED in run:
        return "archived"
    if _SCHEDULE in run:
        return "stopped" if _SUSPENDED in run else "scheduled"
    if _STOPPED in run:
        return "stopped"
    return "waiting" if _TEMPLATE in run else "active"
