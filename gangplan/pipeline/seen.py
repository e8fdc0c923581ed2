"""A workspace as it is now, by the digests of its files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from gangplan.emit.earlier import LAUNCH_MAP_FILE
from gangplan.findings import Finding
from gangplan.incremental.look import (
    Look,
    digest_folder,
    digest_path_to_detect_changes,
    look_at_folders,
    read_memory,
)
from gangplan.incremental.store import RecordStore
from gangplan.records import dataclass
from gangplan.workspace import READ_FOLDERS, RENDERED, SPECS

TEAM = "team.yaml"
UNSWEPT = "unswept"  # the record of folders without sweeps
# What every run may depend on. Templates are left out: each spec has marks of those that it uses
# (spec/templates.py).
PLATFORM = tuple(top for top in READ_FOLDERS if top not in (SPECS, "jobtemplates"))
_RUN_FILE = re.compile(r"-[0-9a-f]{8}\.yaml")  # after the name of the job
_RUN_SUFFIX = -len("-00000000.yaml")


def look_at_workspace(root: Path, store: RecordStore) -> Look | None:
    """Read a workspace as it is now; None if it cannot be read."""
    try:
        return look_at_folders(str(root), (*READ_FOLDERS, RENDERED), read_memory(store.get("folders")))
    except OSError:
        return None


def digest_platform_files(root: Path, seen: Look) -> str:
    """Return a digest of all files that every run may depend on: clusters, the catalog, policies, teams."""
    own = {path: digest for path, digest in seen.contents.items() if path.split("/")[0] in PLATFORM}
    with suppress(OSError), os.scandir(root / SPECS) as entries:
        for team in [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]:
            own[f"{SPECS}/{team}/{TEAM}"] = digest_file(root / SPECS / team / TEAM)
    return digest_folder(own)


def digest_words(*words: str) -> str:
    """Return a short digest of words."""
    return sha256("\0".join(words).encode("utf-8", "surrogateescape")).hexdigest()[:32]


def digest_file(path: Path) -> str:
    """Return the digest of a file; empty if it cannot be read."""
    try:
        return digest_path_to_detect_changes(str(path))
    except OSError:
        return ""


def split_bytes_digest(digest: str) -> str:
    """Return the part of a digest that is of the file's own bytes; the rest is of its templates."""
    return digest.partition("+")[0]


def digest_folder_files(folder: Path) -> dict[str, str]:
    """Return the digests of the files of a folder. Raises OSError."""
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries if not entry.is_dir(follow_symlinks=False)]
    return {name: digest_path_to_detect_changes(str(folder / name)) for name in names}


def digest_team_spec_folders(seen: Look) -> dict[str, dict[str, str]]:
    """Return the folders of each team's specs, with their digests."""
    found: dict[str, dict[str, str]] = {}
    for path, digest in seen.contents.items():
        top, _, rest = path.partition("/")
        if top == SPECS and rest:
            found.setdefault(rest.split("/")[0], {})[path] = digest
    return found


def key_run_files_by_job(names: Iterable[str]) -> dict[str, list[str]]:
    """Return the names of files of runs, by the names of their jobs."""
    found: dict[str, list[str]] = {}
    for name in names:
        if _RUN_FILE.fullmatch(name[_RUN_SUFFIX:]):
            found.setdefault(name[:_RUN_SUFFIX], []).append(name)
    return found


def has_other_run(jobs: Mapping[str, Sequence[str]], name: str) -> bool:
    """Return whether there is another run of the job whose run has this file; `jobs` are all by job."""
    others = () if LAUNCH_MAP_FILE.fullmatch(name) else jobs.get(name[:_RUN_SUFFIX], ())
    return any(one != name for one in others)


def read_sweepless_folders(store: RecordStore, seen: Look) -> set[str]:
    """Return the folders of specs without a sweep, as earlier commands found for the same files."""
    known = set(store.get(UNSWEPT) or ())
    return {path for path, digest in seen.contents.items() if digest in known}


def store_sweepless_folders(store: RecordStore, seen: Look, sweeps: Iterable[str]) -> None:
    """Store which folders of specs hold no sweep; `sweeps` are the files of sweeps."""
    swept = {file.rpartition("/")[0] for file in sweeps}
    found = sorted(
        digest for path, digest in seen.contents.items() if path.startswith(f"{SPECS}/") and path not in swept
    )
    if found != store.get(UNSWEPT):
        store.put(UNSWEPT, found)


@dataclass(slots=True)
class CleanFolders:
    """Folders that people write and in which no secret was found, by the digests of what they hold.

    They count only for the `program` that scanned them, by its digest.
    """

    store: RecordStore
    seen: Look
    program: str
    found: list[str] | None = None
    known: set[str] | None = None

    def looked_through(self) -> list[str]:
        """Return what all runs depend on, and the teams whose folders of specs were scanned for secrets now.

        To keep the result of another spec, check that the spec is as it was.
        """
        scanned = set() if self.found is None else {path for path, _ in self._written()} - self.folders()
        if SPECS in scanned:
            return list(READ_FOLDERS)
        teams = {"/".join(path.split("/")[:2]) for path in scanned if path.startswith(f"{SPECS}/")}
        return [*PLATFORM, *sorted(teams)]

    def folders(self) -> set[str]:
        """Return the clean folders of earlier commands that are as they were."""
        if self.known is None:
            record = self.store.get("clean")
            is_ours = isinstance(record, dict) and record["of"] == self.program
            self.known = set(record["digests"]) if is_ours else set()
        return {path for path, digest in self._written() if digest in self.known}

    def note(self, found: Sequence[Finding]) -> None:
        """Note where secrets were found, after a scan of all other folders."""
        dirty = {one.where.file.rpartition("/")[0] for one in found}
        self.found = sorted({digest for path, digest in self._written() if path not in dirty})

    def save(self) -> None:
        """Store what was noted."""
        if self.found is not None and set(self.found) != self.known:
            self.store.put("clean", {"of": self.program, "digests": self.found})

    def _written(self) -> Iterator[tuple[str, str]]:
        return ((path, one) for path, one in self.seen.contents.items() if path.split("/")[0] != RENDERED)
