"""Trace the ConfigMap of launch scripts that a team's runs mount: gangplan decides all but its namespace."""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.component import Component
from gangplan.findings import Location
from gangplan.generators.common import PREFIX
from gangplan.generators.scripts import launch_map, source_of_team
from gangplan.objects import Body
from gangplan.plan import Unit
from gangplan.trace.cause import Cause, Path, Trace
from gangplan.trace.context import RunContext
from gangplan.trace.files import own
from gangplan.trace.metadata import waived
from gangplan.trace.table import Table, looked_up
from gangplan.trace.tracing import Tracer, files_of, traced
from gangplan.waivers import Subject, marks


def _script(_: RunContext, stars: Path) -> list[Cause]:
    return [own(f"templates/launch/{stars[0]} of gangplan, the same for all runs of all teams")]


def _label(context: RunContext, stars: Path) -> list[Cause]:
    key = str(stars[-1])
    if key.startswith(f"{PREFIX}waived-"):
        waivers = context.unit.sources.waivers if context.unit.sources else ()
        return waived(waivers, key.removeprefix(f"{PREFIX}waived-"), _team(context.unit))
    return [own("gangplan marks all that it renders")]


def _team(unit: Unit) -> Subject:
    return Subject(unit.job.platform.cluster, unit.job.team)


_TABLE = Table(
    ("metadata name", "= its last eight digits are a hash of all scripts: others would have another name"),
    ("metadata namespace", "job.namespace"),
    ("metadata labels gangplan.dev/team", "= the folder of the team in specs/"),
    ("metadata labels gangplan.dev/scripts", "= what the files in it are"),
    ("metadata labels *", _label),
    ("metadata annotations gangplan.dev/source", "= the folder of the team in specs/"),
    ("data *", _script),
    ("**", "= gangplan writes it for the launch scripts of every team (generators/scripts.py)"),
)


def scripts_tracer(unit: Unit, bodies: Sequence[Body], component: Component) -> Tracer:
    """Return the tracer of the fields of the ConfigMap; `unit` is any run of its team on its cluster."""
    waivers = unit.sources.waivers if unit.sources else ()
    files, made = files_of(unit), launch_map(unit.job, marks(waivers, _team(unit)))
    home = Location(source_of_team(unit.job.team), 1, 1)

    def tracer(index: int, path: Path) -> Trace:
        built = bodies[index]
        # Scripts of an earlier gangplan, which kept runs mount, are not made again.
        before = made if built["metadata"]["name"] == made["metadata"]["name"] else built
        found = looked_up(_TABLE, RunContext(unit, files, before), before)
        return traced(before, built, path, component, found, home)

    return tracer
