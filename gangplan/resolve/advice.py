"""Helps for specs that cannot be read yet, with names that the workspace knows.

The reader of a file knows only its format; this module adds names of images, GPUs and endpoints.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from gangplan.findings import Finding
from gangplan.rules.core import SPEC_TYPE
from gangplan.spec.declare import suggest_known_or_new
from gangplan.spec.phrases import is_reference, quote_spec_value
from gangplan.workspace import ClusterFile, TeamFile, Workspace


def add_known_names(findings: Sequence[Finding], workspace: Workspace, team: str) -> list[Finding]:
    """Return the findings about a team's spec, with helps that list what exists."""
    return [_add_workspace_names_to_finding(one, workspace, team) for one in findings]


def _add_workspace_names_to_finding(finding: Finding, workspace: Workspace, team: str) -> Finding:
    clusters = [one for one in workspace.clusters.values() if team in one.spec.teams]
    clue, given = finding.clue, finding.clue.given
    begin, asked = clue.gpu
    if asked:
        models = _list_gpu_models(clusters)
        like = find_gpu_models_meant(asked, models)
        return replace(finding, help=f"{begin}gpu: {{model: {_join_with_or(like)}}}.") if like else finding
    if not isinstance(given, str) or not given:
        return finding
    path, is_form = clue.path, clue.kind == "string_pattern_mismatch"
    if path == ("gpu",) and finding.rule == SPEC_TYPE:
        return _suggest_gpu_block(finding, given, clusters)
    if path == ("gpu", "model") and is_form:
        return _suggest_gpu_model_to_resolve(finding, given, clusters)
    if path[-1:] == ("image",) and is_form and is_reference(given):
        return _suggest_resolvable_images(finding, given, workspace)
    is_checkpoint = (path == ("checkpoint",) and finding.rule == SPEC_TYPE) or (
        path == ("checkpoint", "to") and is_form
    )
    if is_checkpoint and team in workspace.teams and (given[0] == "/" or "://" in given):
        return _suggest_team_checkpoint_claim(finding, given, workspace.teams[team])
    if path[:-1] == ("network", "egress") and is_form:
        return _suggest_resolvable_endpoints(finding, given, clusters)
    return finding


def _suggest_team_checkpoint_claim(finding: Finding, folder: str, team: TeamFile) -> Finding:
    """Suggest the claim that the folder is in: one that all workers may write to, best one for checkpoints."""
    if "://" in folder:
        help = (
            "Write checkpoint: {to: NAME}, with a connection of team.yaml to that bucket;"
            " gangplan list claims has them."
        )
        return replace(finding, help=help)
    claims = [
        name
        for name, claim in team.spec.claims.items()
        if "ReadWriteMany" in claim.access_modes and not claim.read_only
    ]
    claims.sort(key=lambda name: not re.search("ch?e?ckp", name))
    return replace(finding, help=f"Write checkpoint: {{to: {[*claims, 'CLAIM'][0]}, path: {folder}}}.")


def _suggest_resolvable_images(finding: Finding, written: str, workspace: Workspace) -> Finding:
    """Suggest catalog entries whose name occurs in the reference, else those that share a word with it."""
    images = workspace.catalog.images if workspace.catalog else {}
    words = [word for word in re.split(r"[^a-z0-9]+", written.lower()) if word]
    near = [name for name in images if name in words] or [
        name for name in images if set(name.split("-")) & set(words)
    ]
    new = "its owner adds another: gangplan new image NAME"
    help = (
        f"Write image: {_join_with_or(near)}; {new}."
        if near
        else f"There are {', '.join(sorted(images)[:8])}; {new}."
    )
    return replace(finding, help=help if images else finding.help)


def _list_gpu_models(clusters: Sequence[ClusterFile]) -> list[str]:
    return sorted({pool.gpu.model for one in clusters for pool in one.spec.node_pools.values() if pool.gpu})


def _suggest_gpu_block(finding: Finding, written: str, clusters: Sequence[ClusterFile]) -> Finding:
    """Suggest the block `gpu:` with the model that was written in its place."""
    models = _list_gpu_models(clusters)
    if not models or written in models:
        return finding
    like = find_gpu_models_meant(written, models)
    help = (
        f"Write gpu: {{model: {_join_with_or(like)}}}."
        if like
        else suggest_known_or_new("GPU model", written, models, clusters[0].document.file)
    )
    return replace(finding, help=help)


def _suggest_gpu_model_to_resolve(finding: Finding, written: str, clusters: Sequence[ClusterFile]) -> Finding:
    models = _list_gpu_models(clusters)
    if not models or written in models:
        return finding
    message = f"gpu.model is {quote_spec_value(written)}, and no cluster of the team has GPUs called {quote_spec_value(written)}"
    return replace(
        finding,
        message=message,
        help=suggest_resolvable_gpu_models(written, models, clusters[0].document.file),
    )


def suggest_resolvable_gpu_models(written: str, models: Iterable[str], file: str) -> str:
    """Return a help with the models that the spelling may mean, else all; `file` is the cluster's."""
    there = sorted(models)
    like = find_gpu_models_meant(written, there)
    return (
        f"Write model: {_join_with_or(like)}."
        if like
        else suggest_known_or_new("GPU model", written, there, file)
    )


def find_gpu_models_meant(written: str, models: Iterable[str]) -> list[str]:
    """Return the models that a shorter or different spelling may mean; none if it is itself a model."""
    there = sorted(models)
    own = re.sub(r"[^a-z0-9]", "", written.lower().replace("nvidia", "").replace("amd", ""))
    like = [one for one in there if own and re.sub(r"[^a-z0-9]", "", one).startswith(own)]
    return [] if written in like else like


def _suggest_resolvable_endpoints(finding: Finding, written: str, clusters: Sequence[ClusterFile]) -> Finding:
    """Suggest names of endpoints, which cluster files define, for a host."""
    offered = sorted({name for one in clusters for name in one.spec.egress})
    name = re.sub(r"[^a-z0-9]+", "-", written.lower()).strip("-")
    of = ", ".join(one.document.file for one in clusters[:2])
    message = f"network.egress takes names of endpoints, and {quote_spec_value(written)} is not one"
    help = f"Write {_join_with_or(offered)}" if offered else "None is offered"
    new = f"its owner adds {name}: [{{cidr: 10.20.0.0/16, ports: [443]}}] under egress: in {of}"
    return replace(finding, message=message, help=f"{help}; or {new}." if clusters else finding.help)


def _join_with_or(names: Sequence[str]) -> str:
    return " or ".join(names[:4])
