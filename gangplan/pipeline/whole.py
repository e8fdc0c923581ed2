"""The results of a team as a whole, taken if nothing of the team has changed, instead of a result per spec.

A command that shows findings to people needs little about runs that are as they were: how many there are,
what was found about them, and which could conflict with each other. That is kept in addition to the results
(`stored.py`) and replaces them as long as the folders of the team's specs and of its runs in `rendered/` hold
exactly what they held. Everything else is read from the results themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

from gangplan.emit import FileOutcome, TreeChange, is_launch_file, is_run_file
from gangplan.findings import Finding, Location
from gangplan.incremental.look import digest_folder
from gangplan.pipeline.stored import (
    SCHEDULE_FIELDS,
    Json,
    RuleFinder,
    load_location,
    load_run_facts,
    load_shared_result_values,
    load_stored_finding,
    load_stored_finding_rule,
)
from gangplan.pipeline.worker import TaskResult
from gangplan.records import dataclass
from gangplan.rules.model import Rule, Severity
from gangplan.validate.kueue.contention import RunDemand
from gangplan.workspace import RENDERED, SPECS, SpecFile

#: The part of a run's demand that decides whether it could conflict with another: its queue, its priority,
#: and whether its pods start together.
Rank = tuple[str, int, bool]
# How findings about a run begin its name.
_JOB = "TrainJob/"


class VanishedError(Exception):
    """The results of a team that was taken as a whole are gone: another command has replaced them."""


@dataclass(slots=True)
class WholeTeam:
    """A team as a whole. `same` counts its files in `rendered/`, `runs` those of runs, `counts` by cluster.

    `ranks` are by cluster. The `outcome` has no changes and no demands, only the facts of runs with a
    schedule, and only the jobs that findings outside of specs are about. `folders` are those of its specs,
    with their digests.
    """

    team: str
    outcome: TaskResult
    same: int
    counts: Mapping[str, int]
    ranks: Mapping[str, Collection[Rank]]
    settled: Collection[str]
    judges: Collection[str]
    folders: Mapping[str, str]

    @property
    def runs(self) -> int:
        """The number of files of runs."""
        return sum(self.counts.values())


def summarise_team_results(record: Json, marks: str) -> Json:
    """Summarise the results of a team from their record; `marks` identify the templates that they come from.

    None if one of its jobs is defined twice, which only the results of all specs show.
    """
    files = record["files"]
    told = [one for _, _, one in files.values()]
    places: dict[tuple[str, ...], Json] = {}
    if any(places.setdefault((*job,), place) != place for one in told for *job, place in one[2]):
        return None
    texts = [text for one in told for text in one[1]]
    scripts = {path for path, _ in texts if is_launch_file(path)}
    matched: dict[str, set[int]] = {}
    for one in told:
        for cluster, numbers in one[3].items():
            matched.setdefault(cluster, set()).update(numbers)
    policies = {name for one in told for name in record["shared"]["policies"][one[7]]}
    shared = record["shared"].get("facts", [])
    scheduled = [
        [path, facts, shared[facts[-1]]]
        for path, (_, _, one) in files.items()
        for facts in one[8]
        if any(shared[facts[-1]][SCHEDULE_FIELDS])
    ]
    return {
        "of": record["of"],
        "folders": record["folders"],
        "marks": marks,
        "rendered": find_rendered_folders_with_texts(texts),
        "judges": sorted({judge for _, judge, _ in files.values()}),
        "specs": len(files),
        "same": len({path for path, _ in texts}),
        "counts": dict(Counter(path.partition("/")[0] for path, _ in texts if is_run_file(path))),
        "sums": [sum(one[5] for one in told) + len(scripts), sum(one[6] for one in told)],
        "policies": sorted(policies),
        "matched": {cluster: sorted(numbers) for cluster, numbers in matched.items()},
        "ranks": _collect_clash_ranks_by_cluster(told, record["shared"].get("demands", [])),
        "facts": scheduled,
        **_dump_team_findings(told),
    }


def _collect_clash_ranks_by_cluster(told: Sequence[Json], shared: Sequence[Json]) -> Json:
    """Return the ranks of runs, by cluster; `shared` are their demands, as they are kept."""
    found: dict[str, set[tuple[Any, ...]]] = {}
    for cluster, _, _, number in (demand for one in told for demand in one[4]):
        held = shared[number]
        found.setdefault(cluster, set()).add((held[4], held[5], held[3]))
    return {cluster: sorted(own) for cluster, own in found.items()}


def _dump_team_findings(told: Sequence[Json]) -> Json:
    """Return the findings, what they have in common, and the jobs that those outside of specs are about."""
    runs: dict[str, set[str]] = {}
    for cluster, namespace, job, _ in (job for one in told for job in one[2]):
        runs.setdefault(f"{_JOB}{namespace}/{job}", set()).add(cluster)
    findings = [_name_clusters_in_finding(finding, runs) for one in told for finding in one[0]]
    refs = {finding[4] for finding in findings if not _is_own(finding)}
    keys: dict[tuple[Any, ...], int] = {}
    return {
        "findings": [_compact_stored_finding(one, keys) for one in findings],
        "keys": list(keys),
        "jobs": [job for one in told for job in one[2] if f"{_JOB}{job[1]}/{job[2]}" in refs],
    }


def load_whole_team(
    team: str,
    held: Json,
    of: tuple[str, Mapping[str, str], str, int],
    contents: Mapping[str, str],
    rules: RuleFinder,
) -> WholeTeam | None:
    """Read a team from its record; None unless the record fits.

    It fits if it is `of` the same conditions, folders of specs, marks and number of specs, and if `rendered/`
    has just the same `contents`.
    """
    if not isinstance(held, dict) or (held["of"], held["folders"], held["marks"], held["specs"]) != of:
        return None
    if any(contents.get(folder) != digest for folder, digest in held["rendered"].items()):
        return None
    try:
        keys = [
            (load_stored_finding_rule(rule, rules), file, help, None if level is None else Severity(level))
            for rule, file, help, level in held["keys"]
        ]
        findings = [_load_team_finding(one, keys, rules) for one in held["findings"]]
    except ValueError:
        return None
    objects, active = held["sums"]
    outcome = TaskResult(
        findings=findings,
        jobs=[
            (cluster, namespace, job, load_location(place)) for cluster, namespace, job, place in held["jobs"]
        ],
        matched={cluster: set(numbers) for cluster, numbers in held["matched"].items()},
        objects=objects,
        active=active,
        policies=set(held["policies"]),
        facts=[load_run_facts(path, own, common) for path, own, common in held["facts"]],
    )
    ranks = {cluster: {tuple(one) for one in own} for cluster, own in held["ranks"].items()}
    return WholeTeam(
        team, outcome, held["same"], held["counts"], ranks, list(held["rendered"]), held["judges"], of[1]
    )


def _is_own(held: Json) -> bool:
    """Return whether a finding is in a spec of the team, so that no other team has the same."""
    return bool(held[1][0].startswith(f"{SPECS}/"))


def _name_clusters_in_finding(held: Json, runs: Mapping[str, Collection[str]]) -> Json:
    """Return a finding in a spec as it is reported: it names its clusters if they are only some of the run's.

    `findings.name_differing_clusters` does this for all others, which are never about jobs that the whole
    leaves out.
    """
    clusters = held[8]
    if not _is_own(held) or not clusters or {*clusters} >= {*runs.get(held[4], ())}:
        return held
    return [*held[:2], f"on {', '.join(clusters)}: {held[2]}", *held[3:]]


def _compact_stored_finding(held: Json, keys: dict[tuple[Any, ...], int]) -> Json:
    """Return a finding with what many have in common as the number of a key: rule, file, help and level."""
    rule, (file, *at), message, help, ref, path, waiver, fix, clusters, level, until = held
    if waiver is not None or fix is not None or until:
        return held
    return [keys.setdefault((rule, file, help, level), len(keys)), *at, message, ref, path, clusters]


def _load_team_finding(
    held: Json, keys: Sequence[tuple[Rule, str, str, Severity | None]], rules: RuleFinder
) -> Finding:
    """Read a finding. Raises ValueError if there is no such rule."""
    if type(held[0]) is not int:
        return load_stored_finding(held, rules)
    key, line, column, end, message, ref, path, clusters = held
    rule, file, help, level = keys[key]
    where = Location(file, line, column, end)
    return Finding(rule, where, message, help, ref, path, None, None, tuple(clusters), level)


def combine_marks(marks: Mapping[str, str], files: Collection[SpecFile]) -> str:
    """Return one mark for the templates that several specs use, made from the specs' own marks."""
    own = sorted(f"{one.file}\0{marks[one.file]}" for one in files if one.file in marks) if marks else []
    return sha256("\n".join(own).encode("utf-8", "surrogateescape")).hexdigest()[:32] if own else ""


def can_ranked_runs_clash(ranks: Collection[Rank]) -> bool:
    """Return whether runs of these ranks could conflict (`checks.check_runs_together`).

    They could where pods start one by one, or where a queue has several priorities.
    """
    queues = {queue for queue, _, _ in ranks}
    return not all(is_gang for _, _, is_gang in ranks) or len({one[:2] for one in ranks}) > len(queues)


def clash_rank_of(demand: RunDemand) -> Rank:
    """Return what decides whether a run could conflict with another."""
    return demand.queue, demand.priority, demand.is_gang


def load_team_result_details(record: Json) -> Iterator[TaskResult]:
    """Yield what the whole leaves out of the results of a team: changes, jobs and demands."""
    demands = load_shared_result_values(record["shared"])["demands"]
    for path, (_, _, told) in record["files"].items():
        yield TaskResult(
            path,
            changes=[TreeChange(file, FileOutcome.SAME, digest) for file, digest in told[1]],
            jobs=[
                (cluster, namespace, job, load_location(place)) for cluster, namespace, job, place in told[2]
            ],
            demands=[
                (cluster, job, load_location(place), demands[number])
                for cluster, job, place, number in told[4]
            ],
        )


def find_rendered_folders_with_texts(texts: Sequence[Sequence[str]]) -> dict[str, str]:
    """Return the folders of `rendered/` that hold exactly these texts (path, digest), with their digests."""
    found: dict[str, dict[str, str]] = {}
    for path, digest in texts:
        folder, _, name = f"{RENDERED}/{path}".rpartition("/")
        found.setdefault(folder, {})[name] = digest
    return {folder: digest_folder(files) for folder, files in found.items()}
