"""The order of a team's jobs on a cluster where jobs follow others, and the longest path through it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gangplan.model.cost import compute_max_seconds
from gangplan.model.duration import format_duration
from gangplan.pipeline.worker import PlannedRun
from gangplan.records import dataclass

Place = tuple[str, str]  # file and cluster


@dataclass(frozen=True, slots=True)
class Link:
    """A job in its order: how long a run of it takes at most, in seconds, and which jobs it follows.

    `runs` are several for a sweep, whose trials count as if they ran at once. `most_s` is of the longest.
    `path` are the jobs of the longest path to its end, itself the last, and `path_s` is how long that takes
    at most, without the time in queues. `unknown` are jobs that it follows and that are not part of the plan.
    """

    name: str
    cluster: str
    runs: tuple[str, ...]
    most_s: int
    after: tuple[str, ...]
    path: tuple[str, ...]
    path_s: int
    unknown: tuple[str, ...] = ()


def build_job_chain_links(runs: Sequence[PlannedRun]) -> dict[tuple[str, str], list[Link]]:
    """Return the links of each cluster and team where a run follows another, in their order."""
    at: dict[Place, list[PlannedRun]] = {}
    for run in runs:
        if run.unit.job.is_active:
            at.setdefault((run.unit.job.source, run.cluster), []).append(run)
    known: dict[Place, Link] = {}
    found: dict[tuple[str, str], list[Link]] = {}
    for place, own in at.items():
        job = own[0].unit.job
        if job.after is not None:
            _build_chain_link(at, known, place, found.setdefault((job.platform.cluster, job.team), []))
    return found


def _build_chain_link(
    at: Mapping[Place, Sequence[PlannedRun]], known: dict[Place, Link], place: Place, into: list[Link]
) -> Link:
    if place in known:
        if known[place] not in into:
            into.append(known[place])
        return known[place]
    runs = at[place]
    job = runs[0].unit.job
    earlier = job.after.jobs if job.after else ()
    before = [
        _build_chain_link(at, known, one, into)
        for each in earlier
        if (one := (each.file, each.cluster)) in at
    ]
    most = max(compute_max_seconds(run.unit.job) for run in runs)
    longest = max(before, key=lambda one: one.path_s, default=None)
    name = job.trial.sweep if job.trial else job.name
    link = Link(
        name,
        runs[0].cluster,
        tuple(run.name for run in runs),
        most,
        tuple(one.name for one in earlier),
        (*(longest.path if longest else ()), name),
        most + (longest.path_s if longest else 0),
        tuple(one.name for one in earlier if (one.file, one.cluster) not in at),
    )
    known[place] = link
    into.append(link)
    return link


def render_chains(runs: Sequence[PlannedRun]) -> list[str]:
    """Return a block of text for each team of a cluster."""
    return [_render_job_chain(*place, links) for place, links in sorted(build_job_chain_links(runs).items())]


def _render_job_chain(cluster: str, team: str, links: Sequence[Link]) -> str:
    last = max(links, key=lambda one: one.path_s)
    rows = [(one.name, _format_chain_link(one, cluster)) for one in links]
    width = max(len(name) for name, _ in rows)
    lines = "".join(f"  {name:<{width}} {words}\n" for name, words in rows)
    left = dict.fromkeys(other for one in links if one.name in last.path for other in one.unknown)
    beyond = f" and {' and '.join(left)}" if left else ""
    path = (
        f"  critical path: {' → '.join(last.path)}, at most {format_duration(last.path_s)},"
        f" not counting queues{beyond}\n"
    )
    return f"{team} on {cluster}: jobs in their order\n{lines}{path}"


def _format_chain_link(link: Link, cluster: str) -> str:
    """Return the text of a link: `at most 24h, waits for features`."""
    said = f"at most {format_duration(link.most_s)}"
    if link.cluster != cluster:
        said += f", on {link.cluster}"
    if len(link.runs) > 1:
        said += f", {len(link.runs)} trials"
    if link.after:
        said += f", waits for {' and '.join(link.after)}"
    return said + (f" ({', '.join(link.unknown)} not in this plan)" if link.unknown else "")


def build_job_chains_json(runs: Sequence[PlannedRun]) -> list[dict[str, Any]]:
    """Return the chains as data; times are seconds."""
    return [
        {
            "cluster": cluster,
            "team": team,
            "steps": [
                {
                    "job": one.name,
                    "cluster": one.cluster,
                    "runs": list(one.runs),
                    "after": list(one.after),
                    "atMost": one.most_s,
                }
                for one in links
            ],
            "criticalPath": list(max(links, key=lambda one: one.path_s).path),
            "atMost": max(one.path_s for one in links),
        }
        for (cluster, team), links in sorted(build_job_chain_links(runs).items())
    ]
