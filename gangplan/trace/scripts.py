"""Trace the ConfigMap of launch scripts that a team's runs mount: gangplan decides all but its namespace."""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.component import Component
from gangplan.findings import FieldPath, Location
from gangplan.generators.common import LABEL_PREFIX
from gangplan.generators.scripts import generate_launch_script_config_map, team_source_of
from gangplan.objects import Body
from gangplan.plan import RunPlan
from gangplan.trace.cause import Cause, Trace
from gangplan.trace.context import RunContext
from gangplan.trace.files import build_own_cause
from gangplan.trace.metadata import trace_waiver_causes
from gangplan.trace.table import CauseTable, build_cause_finder_from_table
from gangplan.trace.tracing import Tracer, collect_traced_files_of_run, trace_patched_field
from gangplan.waivers import Subject, list_waived_policies


def _trace_launch_script_causes(_: RunContext, stars: FieldPath) -> list[Cause]:
    return [build_own_cause(f"templates/launch/{stars[0]} of gangplan, the same for all runs of all teams")]


def _trace_script_label_causes(context: RunContext, stars: FieldPath) -> list[Cause]:
    key = str(stars[-1])
    if key.startswith(f"{LABEL_PREFIX}waived-"):
        waivers = context.unit.sources.waivers if context.unit.sources else ()
        return trace_waiver_causes(
            waivers, key.removeprefix(f"{LABEL_PREFIX}waived-"), _build_waiver_subject(context.unit)
        )
    return [build_own_cause("gangplan marks all that it renders")]


def _build_waiver_subject(unit: RunPlan) -> Subject:
    return Subject(unit.job.platform.cluster, unit.job.team)


_TABLE = CauseTable(
    ("metadata name", "= its last eight digits are a hash of all scripts: others would have another name"),
    ("metadata namespace", "job.namespace"),
    ("metadata labels gangplan.dev/team", "= the folder of the team in specs/"),
    ("metadata labels gangplan.dev/scripts", "= what the files in it are"),
    ("metadata labels *", _trace_script_label_causes),
    ("metadata annotations gangplan.dev/source", "= the folder of the team in specs/"),
    ("data *", _trace_launch_script_causes),
    ("**", "= gangplan writes it for the launch scripts of every team (generators/scripts.py)"),
)


def build_scripts_tracer(unit: RunPlan, bodies: Sequence[Body], component: Component) -> Tracer:
    """Return the tracer of the fields of the ConfigMap; `unit` is any run of its team on its cluster."""
    waivers = unit.sources.waivers if unit.sources else ()
    files, made = (
        collect_traced_files_of_run(unit),
        generate_launch_script_config_map(
            unit.job, list_waived_policies(waivers, _build_waiver_subject(unit))
        ),
    )
    home = Location(team_source_of(unit.job.team), 1, 1)

    def tracer(index: int, path: FieldPath) -> Trace:
        built = bodies[index]
        # Scripts of an earlier gangplan, which kept runs mount, are not made again.
        before = made if built["metadata"]["name"] == made["metadata"]["name"] else built
        found = build_cause_finder_from_table(_TABLE, RunContext(unit, files, before), before)
        return trace_patched_field(before, built, path, component, found, home)

    return tracer
