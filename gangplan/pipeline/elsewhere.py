"""A job on the other pools and clusters of its team: the same spec there, checked as if it had been
committed.

Each place is a workspace of its own: the platform as it is, and the one spec with other fields of placement.
The GPU model is left out, because the question is about pools with other models.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gangplan.errors import UserError
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request, Result
from gangplan.pipeline.worker import PlannedRun
from gangplan.records import dataclass
from gangplan.source import Document
from gangplan.workspace import SPECS, SpecFile, Workspace, load_spec

# Fields of a spec that choose the cluster and its hardware, by path.
_DROPPED = frozenset({("clusters",), ("placement", "nodePool"), ("gpu", "model")})


@dataclass(frozen=True, slots=True)
class ClusterPool:
    """A pool of a cluster, with the model of its GPUs, if it has any."""

    cluster: str
    pool: str
    gpu: str


def list_pools_usable_by_team(workspace: Workspace, team: str, gpus: int) -> list[ClusterPool]:
    """Return the pools that the team's workers could use: pools with GPUs if they ask for some, else those
    without."""
    return [
        ClusterPool(cluster, name, pool.gpu.model if pool.gpu else "")
        for cluster, file in sorted(workspace.clusters.items())
        if team in file.spec.teams
        for name, pool in sorted(file.spec.node_pools.items())
        if bool(pool.gpu) == bool(gpus)
    ]


def try_spec_on_other_pools(
    request: Request, workspace: Workspace, file: SpecFile, now: Sequence[PlannedRun]
) -> Iterator[tuple[ClusterPool, Result]]:
    """Yield the result of a spec at each place; `now` are its current runs.

    Raises UserError for a spec that cannot be read, and for a sweep.
    """
    spec, findings = load_spec(workspace.root, file, workspace.templates)
    if file.file in workspace.sweeps:
        raise UserError(f"{file.file} is a sweep", "Name the spec of a job.")
    if spec is None:
        raise UserError(f"{file.file}: {findings[0].message}", findings[0].help)
    gpus = now[0].unit.job.gpus if now else spec.spec.gpus or 0
    like = None
    for place in list_pools_usable_by_team(workspace, file.team, gpus):
        with tempfile.TemporaryDirectory(prefix="gangplan-") as name:
            root = Path(name).resolve()
            # Files next to the spec belong to the run.
            shutil.copytree(workspace.root / SPECS / file.team, root / SPECS / file.team, symlinks=True)
            (root / file.file).write_text(move_spec_to_other_place(spec.document, place), encoding="utf-8")
            asked = replace(
                request,
                root=root,
                clusters=(),
                teams=(),
                specs=(str(root / file.file),),
                engine="serial",
                uses_cache=False,
                like=like,
            )
            result = preview_render(asked, replace(workspace, root=root))
        like = result.worker
        yield place, result


def move_spec_to_other_place(document: Document, place: ClusterPool) -> str:
    """Return the spec as it would be written for another place, in JSON's style; scalars keep their text."""
    fields = _copy_spec_without_placement(document, (), document.value)
    placement = {**fields.get("placement", {}), "nodePool": json.dumps(place.pool)}
    return (
        _render_flow_yaml({**fields, "clusters": [json.dumps(place.cluster)], "placement": placement}) + "\n"
    )


def _copy_spec_without_placement(document: Document, path: tuple[str | int, ...], value: Any) -> Any:
    """Return the value with numbers as they are written, without the fields that say where the job runs."""
    if isinstance(value, Mapping):
        inner = {
            name: _copy_spec_without_placement(document, (*path, name), item)
            for name, item in value.items()
            if (*path, name) not in _DROPPED
        }
        return {name: item for name, item in inner.items() if item != {} or path}
    if isinstance(value, list):
        return [
            _copy_spec_without_placement(document, (*path, number), item) for number, item in enumerate(value)
        ]
    text = document.text(path)
    if text is None or isinstance(value, str):  # plain text may have commas and brackets
        return json.dumps(value)
    return text or "null"


def _render_flow_yaml(value: Any) -> str:
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(f"{json.dumps(name)}: {_render_flow_yaml(item)}" for name, item in value.items())
            + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(_render_flow_yaml, value)) + "]"
    return str(value)
