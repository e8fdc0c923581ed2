"""Results of earlier commands about specs and clusters whose files are the same, reused instead of made
again.

The result of a spec follows from its bytes and from the conditions: the files of the platform and of teams,
gangplan itself, the program that builds overlays, and the requested clusters and versions. A result is reused
only if these are the same and `rendered/` holds exactly what would be rendered, so nothing has to be written,
and the text can be read there. The day and expired waivers are applied later, as always.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from gangplan.emit import TreeChange
from gangplan.findings import Finding
from gangplan.incremental.look import Look, digest_folder, look_at_folders
from gangplan.incremental.store import RecordStore
from gangplan.pipeline.opinions import SecondOpinions
from gangplan.pipeline.seen import (
    CleanFolders,
    digest_file,
    digest_folder_files,
    digest_platform_files,
    digest_team_spec_folders,
    digest_words,
    has_other_run,
    key_run_files_by_job,
    split_bytes_digest,
)
from gangplan.pipeline.stored import (
    Json,
    RuleFinder,
    SharedValues,
    compact_shared_result_values,
    dump_expanded_task_result,
    dump_stored_finding,
    load_expanded,
    load_shared_result_values,
    load_stored_finding,
)
from gangplan.pipeline.team_results import TeamResults
from gangplan.pipeline.whole import (
    VanishedError,
    WholeTeam,
    combine_marks,
    find_rendered_folders_with_texts,
    load_team_result_details,
    load_whole_team,
    summarise_team_results,
)
from gangplan.pipeline.worker import TaskResult
from gangplan.records import dataclass
from gangplan.workspace import RENDERED, SpecFile


@dataclass(slots=True)
class KnownResults:
    """The results of earlier commands for one command, and what it adds to them.

    `settled` are the folders of `rendered/` that hold exactly what is rendered now, and the files that do so
    in other folders. If a file holds a secret (`has_secrets`), nothing is kept.
    """

    root: Path
    store: RecordStore
    seen: Look
    clean: CleanFolders
    conditions: str
    platform: str
    clusters: tuple[str, ...]
    rules: RuleFinder
    opinions: SecondOpinions
    marks: Mapping[str, str]  # of the templates that specs are made from, by spec
    settled: set[str] = field(default_factory=set)
    takes_whole: bool = False  # teams may be taken as a whole
    wholes: dict[str, WholeTeam] = field(default_factory=dict)
    has_secrets: bool = False
    _open: tuple[str, Json, dict[str, list[Any]]] | None = None
    _noted: str = ""  # the team of the last spec with a new result
    _platform: tuple[str, Json] | None = None
    _teams: dict[str, TeamResults] = field(default_factory=dict)
    _standing: dict[str, tuple[TaskResult, str | None]] = field(default_factory=dict)
    _runs: dict[str, dict[str, list[str]]] = field(default_factory=dict)  # files by folder and job

    def unknown(self, files: Sequence[SpecFile]) -> list[SpecFile]:
        """Return the specs whose results are not known; `result` has those of the others."""
        by_team: dict[str, list[SpecFile]] = {}
        for file in files:
            by_team.setdefault(file.team, []).append(file)
        folders = digest_team_spec_folders(self.seen)
        for team, own in by_team.items():
            if not (self.takes_whole and self._take_whole(team, folders.get(team, {}), own)):
                self._teams[team] = self._look_up(team, folders.get(team, {}), own)
        return [file for file in files if not self._is_known(file)]

    def result(self, file: SpecFile) -> TaskResult | None:
        """Return what is known of a spec. Specs of a team are best requested together."""
        if not self._is_known(file):
            return None
        if self._open is None or self._open[0] != file.team:
            record = self._teams[file.team].record or self._record(file.team)
            self._teams[file.team].record = None  # asked for once: a decoded record takes much memory
            self._open = (file.team, record, load_shared_result_values(record["shared"]))
        _, record, shared = self._open
        return load_expanded(file.file, record["files"][file.file][2], self.rules, shared)

    def details(self, whole: WholeTeam) -> Iterator[TaskResult]:
        """Return what is left out of a team taken as a whole, by spec. Raises VanishedError."""
        record = self._record(whole.team)
        if record["folders"] != whole.folders:
            raise VanishedError(whole.team)
        return load_team_result_details(record)

    def note(self, result: TaskResult) -> None:
        """Note a new result of a spec."""
        team = result.file.split("/")[1]
        if self._noted not in ("", team):  # specs come team by team
            self._teams[self._noted].fold()
        self._noted = team
        self._teams[team].note(result, self.rules)

    def cluster(self, cluster: str, teams: Sequence[str], make: Callable[[], TaskResult]) -> TaskResult:
        """Return the known result of a cluster's platform and tenants before any run, or make it."""
        name = f"clusters/{digest_words(cluster, *self.clusters, '', *teams)}"
        record = self.store.get(name)
        if isinstance(record, dict) and record["of"] == self.conditions:
            result = self._result(record)
            texts = [(change.path, change.digest) for change in result.changes] if result else []
            if result is not None and self._is_there(texts, set()):
                self.opinions.count(texts, record["judge"])
                self._standing[name] = (result, record["judge"])
                return result
        result = make()
        self._standing[name] = (result, None)
        return result

    def platform_findings(self, make: Callable[[], list[Finding]]) -> list[Finding]:
        """Return the known findings about clusters and teams before any spec is read, or make them."""
        record = self.store.get(name := f"platform/{digest_words(*self.clusters)}")
        if isinstance(record, dict) and record["of"] == self.conditions:
            try:
                return [load_stored_finding(one, self.rules) for one in record["findings"]]
            except ValueError:
                pass
        found = make()
        try:
            told = [dump_stored_finding(one, self.rules) for one in found]
        except ValueError:
            return found
        self._platform = (name, {"of": self.conditions, "findings": told})
        return found

    def scanned(self, found: Sequence[Finding], is_everything: bool) -> None:
        """Note where secrets were found, after a scan of the folders that are not clean."""
        self.has_secrets = bool(found)
        if is_everything:
            self.clean.note(found)

    def rendered(self) -> list[str]:
        """Return all folders of `rendered/`, including itself, if it exists."""
        return [path for path in self.seen.contents if f"{path}/".startswith(f"{RENDERED}/")]

    def without_secrets(self) -> set[str]:
        """Return the folders without secrets: those in which none was found, and what is rendered from
        them."""
        return self.settled | self.clean.folders()

    def save(self, judge: str, telling: Collection[str], changes: Iterable[TreeChange]) -> None:
        """Keep the new results.

        `judge` had nothing against the texts; empty if there was none, and then `telling` are the files of
        this command's `changes` that such a judge must see. Nothing is kept if a file changed meanwhile, or
        if one holds a secret: a result could repeat it.
        """
        if self.has_secrets:
            self.store.keep_newest("worlds", 0)
            self.store.keep_newest("shapes", 0)
            return
        try:
            now = look_at_folders(str(self.root), self.clean.looked_through(), self.seen.memory)
            if digest_platform_files(self.root, now) != self.platform:
                return
            seen_by = judge or self.opinions.batch(((one.path, one.digest) for one in changes), telling)
            for team in list(self._teams):
                self._save_team(team, self._teams.pop(team), judge, seen_by)
            if now.contents.items() <= self.seen.contents.items():
                self.clean.save()
        except OSError:
            return
        if self._platform is not None:
            self.store.put(*self._platform)
        for name, (result, before) in self._standing.items():
            if before is None or (judge and before != judge):
                self._save_cluster(name, result, seen_by)

    def _record(self, team: str) -> Json:
        """Return the record of a team; empty if there is none, or if it was made under other conditions."""
        record = self.store.get(self._name(team))
        if isinstance(record, dict) and record["of"] == self.conditions:
            return record
        return {"files": {}, "folders": {}, "shared": {}}

    def _look_up(self, team: str, folders: Mapping[str, str], files: Sequence[SpecFile]) -> TeamResults:
        """Find which specs of a team are known: those with the same files, whose texts are in `rendered/`."""
        record = self._record(team)
        known = TeamResults(folders, len(record["files"]), record)
        is_same = record["folders"] == folders and set(record["files"]) >= {file.file for file in files}
        texts: dict[str, list[tuple[str, str]]] = {}
        for path in (file.file for file in files):
            digest, judge, told = record["files"].get(path, ("", "", None))
            folder, _, name = path.rpartition("/")
            bare = split_bytes_digest(digest) if is_same else self._digest_of(folder, name)
            known.digests[path] = bare + self.marks.get(path, "")
            if told is not None and known.digests[path] == digest:
                texts[path], known.judges[path] = told[1], judge
        there = find_rendered_folders_with_texts([one for own in texts.values() for one in own])
        settled = {one for one, digest in there.items() if self.seen.contents.get(one) == digest}
        self.settled |= settled
        for path, own in texts.items():
            if self._is_there(own, settled) and self._reads(record["files"][path][2]):
                known.taken.add(path)
                self.opinions.count(own, known.judges[path])
        return known

    def _reads(self, told: Json) -> bool:
        """Return whether the findings of a result can be read: all their rules exist."""
        return all(self.rules(one[0]) is not None for one in told[0])

    def _take_whole(self, team: str, folders: Mapping[str, str], files: Sequence[SpecFile]) -> bool:
        """Take what is known of a team as a whole, and return whether that was possible."""
        of = (self.conditions, folders, combine_marks(self.marks, files), len(files))
        held = self.store.get(self._name(team, "sums"))
        whole = load_whole_team(team, held, of, self.seen.contents, self.rules)
        if whole is None or (self.opinions.judge and {*whole.judges} - {self.opinions.judge}):
            return False
        self.wholes[team] = whole
        self.settled.update(whole.settled)
        return True

    def _is_known(self, file: SpecFile) -> bool:
        return file.team in self.wholes or file.file in self._teams[file.team].taken

    def _is_there(self, texts: Sequence[tuple[str, str]], settled: Collection[str]) -> bool:
        """Return whether `rendered/` holds the texts of a result (path, digest), and no other run of its
        jobs."""
        for path, digest in texts:
            folder, _, name = f"{RENDERED}/{path}".rpartition("/")
            if folder in settled:
                continue
            if self.seen.contents.get(folder) == digest_folder({name: digest}):
                self.settled.add(folder)
                continue
            if self._digest_of(folder, name) != digest:
                return False
            if "/runs/" in folder and has_other_run(self._runs_in(folder), name):
                return False
            self.settled.add(f"{folder}/{name}")
        return True

    def _digest_of(self, folder: str, name: str) -> str:
        """Return the digest of a file as it was looked at; if its folder was not read then, as it is now."""
        own = self.seen.digests.get(folder)
        return digest_file(self.root / folder / name) if own is None else own.get(name, "")

    def _runs_in(self, folder: str) -> Mapping[str, Sequence[str]]:
        """Return the files of runs in a folder, by job."""
        if folder not in self._runs:
            names, _ = self.seen.plain.get(folder) or (os.listdir(self.root / folder), ())
            self._runs[folder] = key_run_files_by_job(names)
        return self._runs[folder]

    def _save_team(self, team: str, known: TeamResults, judge: str, seen_by: str) -> None:
        """Write the record of a team if anything in it is new or newly judged; what is new is `seen_by`."""
        is_judged = not judge or all(known.judges[path] == judge for path in known.taken)
        if not known.has_new and len(known.taken) == known.before and is_judged:
            if self.takes_whole and len(known.taken) == len(known.digests):  # it was not taken as a whole
                self._sum_up(team, self._record(team))
            return
        there = {one: digest_folder_files(self.root / one) for one in known.folders}
        folders = {one: digest_folder(names) for one, names in there.items()}
        old = self._record(team)
        files = {}
        new, shared = known.new()
        for path in sorted([*known.taken, *new]):
            folder, _, name = path.rpartition("/")
            if (
                split_bytes_digest(known.digests[path]) == there.get(folder, {}).get(name)
                and new.get(path) != ""
            ):
                told = old["files"][path][2] if path in known.taken else json.loads(new[path])
                files[path] = [known.digests[path], judge or known.judges.get(path, seen_by), told]
        common = compact_shared_result_values([told for _, _, told in files.values()], shared.values)
        record = {"of": self.conditions, "folders": folders, "shared": common, "files": files}
        self.store.put(self._name(team), record)
        self._sum_up(team, record)

    def _sum_up(self, team: str, record: Json) -> None:
        marks = combine_marks(self.marks, [SpecFile(path, team) for path in record["files"]])
        self.store.put(self._name(team, "sums"), summarise_team_results(record, marks))

    def _save_cluster(self, name: str, result: TaskResult, seen_by: str) -> None:
        shared = SharedValues({})
        if not result.is_lasting:
            return
        try:
            told = dump_expanded_task_result(result, self.rules, shared)
        except ValueError:
            return
        self.store.put(
            name, {"of": self.conditions, "judge": seen_by, "shared": shared.values, "result": told}
        )

    def _result(self, record: Json) -> TaskResult | None:
        try:
            return load_expanded(
                "", record["result"], self.rules, load_shared_result_values(record["shared"])
            )
        except (ValueError, TypeError, KeyError):
            return None

    def _name(self, team: str, kind: str = "runs") -> str:
        return f"{kind}/{digest_words(team, '', *self.clusters)}"
