"""What a spec that cannot be read yet names, and the workspace knows: the help then says what is there.

A reader of one file knows its form alone; here its findings get the names of images, GPUs and endpoints.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from gangplan.findings import Finding
from gangplan.rules.core import SPEC_VALUE
from gangplan.spec.near import nearest
from gangplan.workspace import ClusterFile, Workspace

_SAID = re.compile(
    r"(?P<field>image(?= is '[^']*', which is an image reference)|gpu\.model|network\.egress\[\d+\]) is '(?P<value>[^']*)', which "
)


def advised(findings: Sequence[Finding], workspace: Workspace, team: str) -> list[Finding]:
    """The findings about a spec of a team, with helps that name what there is."""
    return [_advised(one, workspace, team) if one.rule == SPEC_VALUE else one for one in findings]


def _advised(finding: Finding, workspace: Workspace, team: str) -> Finding:
    said = _SAID.match(finding.message)
    if said is None:
        return finding
    clusters = [one for one in workspace.clusters.values() if team in one.spec.teams]
    return _HELP[said["field"].partition("[")[0]](finding, said["value"], workspace, clusters)


def _image(finding: Finding, written: str, workspace: Workspace, clusters: Sequence[ClusterFile]) -> Finding:
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


def _model(finding: Finding, written: str, workspace: Workspace, clusters: Sequence[ClusterFile]) -> Finding:
    models = sorted({pool.gpu.model for one in clusters for pool in one.spec.node_pools.values() if pool.gpu})
    help = models_like(written, models)
    message = f"no cluster of the team has GPUs called '{written}'"
    return (
        replace(finding, message=f"gpu.model is '{written}', and {message}", help=help) if models else finding
    )


def models_like(written: str, models: Iterable[str]) -> str:
    """A help that names the models that are meant by a shorter or other spelling, else all."""
    there = sorted(models)
    own = re.sub(r"[^a-z0-9]", "", written.lower().replace("nvidia", "").replace("amd", ""))
    like = [one for one in there if own and re.sub(r"[^a-z0-9]", "", one).startswith(own)]
    return f"Write model: {_or(like)}." if like and written not in like else nearest(written, there)


def _egress(finding: Finding, written: str, workspace: Workspace, clusters: Sequence[ClusterFile]) -> Finding:
    """Endpoints have the names that cluster files give them; hosts have none."""
    offered = sorted({name for one in clusters for name in one.spec.egress})
    name = re.sub(r"[^a-z0-9]+", "-", written.lower()).strip("-")
    of = ", ".join(one.document.file for one in clusters[:2])
    message = f"network.egress takes names of endpoints, and '{written}' is none"
    help = f"Write one of {', '.join(offered)}" if offered else "None is offered"
    new = f"its owner adds {name}: [{{cidr: 10.20.0.0/16, ports: [443]}}] under egress: in {of}"
    return replace(finding, message=message, help=f"{help}; or {new}." if clusters else finding.help)


def _or(names: Sequence[str]) -> str:
    return " or ".join(names[:4])


_Help = Callable[[Finding, str, Workspace, Sequence[ClusterFile]], Finding]
_HELP: dict[str, _Help] = {"image": _image, "gpu.model": _model, "network.egress": _egress}
