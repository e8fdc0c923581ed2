"""What a spec that cannot be read yet names, and the workspace knows: the help then says what is there.

A reader of one file knows its form alone; here its findings get the names of images, GPUs and endpoints.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from gangplan.findings import Finding
from gangplan.rules.core import SPEC_TYPE, SPEC_UNKNOWN_FIELD, SPEC_VALUE
from gangplan.spec.declare import known_or_new
from gangplan.workspace import ClusterFile, Workspace

_ASKED = re.compile(r"gpu: \{model: ([^ }]+)\}")
# How findings about these fields begin, and what each is answered with.
_SAID = re.compile(
    r"(?P<field>image) is '(?P<image>[^']*)', which is an image reference"
    r"|(?P<model_field>gpu(?:\.model)?) is '(?P<model>[^']*)'[,;] (?:which|expected fields)"
    r"|checkpoint\.to is '(?P<folder>/[^']*)', which"
    r"|network\.egress\[\d+\] is '(?P<host>[^']*)', which"
)


def with_names(findings: Sequence[Finding], workspace: Workspace, team: str) -> list[Finding]:
    """The findings about a spec of a team, with helps that name what there is."""
    return [_advised(one, workspace, team) for one in findings]


def _advised(finding: Finding, workspace: Workspace, team: str) -> Finding:
    clusters = [one for one in workspace.clusters.values() if team in one.spec.teams]
    if finding.rule == SPEC_UNKNOWN_FIELD and (asked := _ASKED.search(finding.help)):
        models = _models(clusters)
        like = models_like(asked[1], models, "") if asked[1] not in models else ""
        help = (
            _ASKED.sub(f"gpu: {{{like[6:-1]}}}", finding.help) if like.startswith("Write ") else finding.help
        )
        return replace(finding, help=help)
    said = _SAID.match(finding.message) if finding.rule in (SPEC_VALUE, SPEC_TYPE) else None
    if said is None:
        return finding
    if said["image"]:
        return _image(finding, said["image"], workspace)
    if said["model"]:
        return _model(finding, said["model"], clusters, said["model_field"] == "gpu")
    if said["folder"] and team in workspace.teams:
        claims = (
            name
            for name, claim in workspace.teams[team].spec.claims.items()
            if "ReadWriteMany" in claim.access_modes and not claim.read_only
        )
        help = f"Write checkpoint: {{to: {next(claims, 'CLAIM')}, path: {said['folder']}}}."
        return replace(finding, help=help)
    return _egress(finding, said["host"], clusters) if said["host"] else finding


def _image(finding: Finding, written: str, workspace: Workspace) -> Finding:
    """The entry that the reference is nearest to: one whose name is among its words."""
    images = workspace.catalog.images if workspace.catalog else {}
    words = [word for word in re.split(r"[^a-z0-9]+", written.lower()) if word]
    near = [name for name in images if name in words] or [
        name for name in images if set(name.split("-")) & set(words)
    ]
    new = "its owner adds another: gangplan new image NAME"
    help = (
        f"Write image: {_or(near)}; {new}." if near else f"There are {', '.join(sorted(images)[:8])}; {new}."
    )
    return replace(finding, help=help if images else finding.help)


def _models(clusters: Sequence[ClusterFile]) -> list[str]:
    return sorted({pool.gpu.model for one in clusters for pool in one.spec.node_pools.values() if pool.gpu})


def _model(finding: Finding, written: str, clusters: Sequence[ClusterFile], is_whole: bool) -> Finding:
    models = _models(clusters)
    if not models or written in models:
        return finding
    help = models_like(written, models, clusters[0].document.file)
    if is_whole:
        return replace(finding, help=re.sub(r"^Write (model: .*)\.$", r"Write gpu: {\1}.", help))
    message = f"gpu.model is '{written}', and no cluster of the team has GPUs called '{written}'"
    return replace(finding, message=message, help=help)


def models_like(written: str, models: Iterable[str], file: str) -> str:
    """A help that names the models that are meant by a shorter or other spelling, else all; `file` is the cluster's."""
    there = sorted(models)
    own = re.sub(r"[^a-z0-9]", "", written.lower().replace("nvidia", "").replace("amd", ""))
    like = [one for one in there if own and re.sub(r"[^a-z0-9]", "", one).startswith(own)]
    return (
        f"Write model: {_or(like)}."
        if like and written not in like
        else known_or_new("GPU model", written, there, file)
    )


def _egress(finding: Finding, written: str, clusters: Sequence[ClusterFile]) -> Finding:
    """Endpoints have the names that cluster files give them; hosts have none."""
    offered = sorted({name for one in clusters for name in one.spec.egress})
    name = re.sub(r"[^a-z0-9]+", "-", written.lower()).strip("-")
    of = ", ".join(one.document.file for one in clusters[:2])
    message = f"network.egress takes names of endpoints, and '{written}' is none"
    help = f"Write {_or(offered)}" if offered else "None is offered"
    new = f"its owner adds {name}: [{{cidr: 10.20.0.0/16, ports: [443]}}] under egress: in {of}"
    return replace(finding, message=message, help=f"{help}; or {new}." if clusters else finding.help)


def _or(names: Sequence[str]) -> str:
    return " or ".join(names[:4])
