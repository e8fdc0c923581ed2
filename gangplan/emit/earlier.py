"""Runs that the tree already holds: found by job, told apart from new ones by the hash of their spec."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from gangplan.emit.header import source_of
from gangplan.findings import Finding, Location
from gangplan.rules.specs import RUN_KEPT, RUN_RENAMED
from gangplan.source import MOST_BYTES

# On the TrainJob: the hash of what the user wrote, so that a change of platform or templates can be told
# from a change of the spec.
SPEC_HASH = "gangplan.dev/spec-hash"
_RUN_FILE = re.compile(r"(.+)-[0-9a-f]{8}\.yaml")
_HASH_LINE = re.compile(rf'^    {re.escape(SPEC_HASH)}: "?([0-9a-f]+)"?$', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """A rendered run: its path in the tree and its text."""

    path: str
    text: str

    @property
    def name(self) -> str:
        """The run's name: that of its file."""
        return self.path.rpartition("/")[2].removesuffix(".yaml")


@dataclass(slots=True)
class EarlierRuns:
    """The rendered runs of a tree, listed once per folder."""

    tree: Path
    _folders: dict[str, dict[str, list[str]]] = field(default_factory=dict)

    def find(self, path: str, job: str, spec_hash: str) -> EarlierRun | None:
        """A run of the same job and the same spec under another name than `path`, if there is one."""
        folder, _, own = path.rpartition("/")
        for name in self._listed(folder).get(job, ()):
            if name == own:
                continue
            file = self.tree / folder / name
            try:
                if source_of(file) is None or file.stat().st_size > MOST_BYTES:
                    continue  # no run of ours: told where rendered/ is looked through
                text = file.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError):
                continue
            found = _HASH_LINE.search(text)
            if found and found.group(1) == spec_hash:
                return EarlierRun(f"{folder}/{name}", text)
        return None

    def _listed(self, folder: str) -> dict[str, list[str]]:
        """File names of a folder by job."""
        if folder not in self._folders:
            jobs: dict[str, list[str]] = {}
            try:
                names = sorted(os.listdir(self.tree / folder))
            except OSError:
                names = []
            for name in names:
                match = _RUN_FILE.fullmatch(name)
                if match:
                    jobs.setdefault(match.group(1), []).append(name)
            self._folders[folder] = jobs
        return self._folders[folder]


def renamed(source: str, cluster: str, earlier: EarlierRun, name: str, is_kept: bool) -> Finding:
    """The spec is what it was, but its run is another one: the cluster, the image or gangplan changed."""
    where = Location(source, 1, 1)
    old = earlier.name
    if is_kept:
        return Finding(
            RUN_KEPT,
            where,
            f"run {old} on {cluster} is kept as it was rendered; rendered today it would be {name}",
            "Raise run: in the spec to run with today's platform.",
        )
    message = (
        f"the spec did not change, but its run on {cluster} did ({old} is now {name}): "
        "it trains again when this is synced"
    )
    help = "To keep runs as they were rendered: --keep-runs, for render and for the checks."
    return Finding(RUN_RENAMED, where, message, help)
