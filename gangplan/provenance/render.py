"""The statement of a render: what it was made from, and where a tree or another statement differs from it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path

from gangplan import __version__
from gangplan.emit import FileOutcome, TreeChange
from gangplan.pipeline.request import Result
from gangplan.provenance.statement import RenderStatement
from gangplan.records import dataclass
from gangplan.tools.kustomize import find_kustomize_engine
from gangplan.workspace import OVERLAYS, READ_FOLDERS, RENDERED, SPECS

_SHARED = tuple(top for top in READ_FOLDERS if top not in (OVERLAYS, SPECS))


@dataclass(frozen=True, slots=True)
class StatementDifference:
    """Something that is not the same: a file or a program, and what differs, in words."""

    what: str
    words: str


def build_provenance_statement(root: Path, result: Result, cluster: str) -> RenderStatement:
    """Return the statement of a cluster, from a render without errors of everything on it."""
    prefix = f"{cluster}/"
    outputs = {f"{RENDERED}/{one.path}": one.digest for one in result.changes if one.path.startswith(prefix)}
    inputs = {path: _compute_file_digest(root / path) for path in _list_render_inputs(root, result, cluster)}
    return RenderStatement(cluster, inputs, outputs, _list_programs_stated_in_provenance())


def _list_render_inputs(root: Path, result: Result, cluster: str) -> Iterator[str]:
    """Yield every file that can decide the bytes of a cluster's part.

    Policies and MultiKueue look at the files of other clusters, so these count as well.
    """
    for top in (*_SHARED, f"{OVERLAYS}/{cluster}"):
        yield from _list_files_below(root, top)
    yield from (f"{OVERLAYS}/{name}/cluster.yaml" for name in result.workspace.clusters if name != cluster)
    teams = result.workspace.clusters[cluster].spec.teams
    yield from (f"{SPECS}/{team}/team.yaml" for team in teams if team in result.workspace.teams)
    yield from sorted({one.source for one in result.facts if one.cluster == cluster})


def _list_files_below(root: Path, top: str) -> Iterator[str]:
    for parent, folders, names in os.walk(root / top):
        folders.sort()
        inside = os.path.relpath(parent, root).replace(os.sep, "/")
        yield from (f"{inside}/{name}" for name in sorted(names) if not name.startswith("."))


def _list_programs_stated_in_provenance() -> dict[str, str]:
    """Return the programs that decide the bytes: not kubeconform, which only judges them."""
    found = {"gangplan": __version__}
    builder = find_kustomize_engine()
    if builder is not None:
        name, _, version = builder.label.rpartition(" ")
        found[name] = version
    return found


def _compute_file_digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def list_tree_differences(stale: list[TreeChange]) -> list[StatementDifference]:
    """Return every file of rendered/ that is not what is rendered now."""
    words = {
        FileOutcome.CHANGED: "not what is rendered now",
        FileOutcome.NEW: "missing, but it is rendered now",
        FileOutcome.REMOVED: "not rendered now",
    }
    return [StatementDifference(f"{RENDERED}/{one.path}", words[one.outcome]) for one in stale]


def compare_provenance_statements(
    root: Path, said: RenderStatement, now: RenderStatement
) -> list[StatementDifference]:
    """Return every difference between a statement and a render: programs, what was read and rendered, the
    tree."""
    found = [
        StatementDifference(name, f"{old or 'not used'} in the statement, {new or 'not used'} now")
        for name, old, new in _list_differing_statement_entries(said.versions, now.versions)
    ]
    for what, one, other in (("read", said.inputs, now.inputs), ("rendered", said.outputs, now.outputs)):
        for path, old, new in _list_differing_statement_entries(one, other):
            if not new:
                found.append(StatementDifference(path, f"{what} for the statement, and not now"))
            elif not old:
                found.append(StatementDifference(path, f"{what} now, and not for the statement"))
            else:
                found.append(
                    StatementDifference(
                        path,
                        f"{what} with other contents ({_shorten_digest(old)}, now {_shorten_digest(new)})",
                    )
                )
    for path, digest in sorted(said.outputs.items()):
        here = _compute_file_digest(root / path) if _is_below(path) else ""
        if now.outputs.get(path) == digest and here != digest:
            found.append(
                StatementDifference(
                    path, f"in the tree with other contents ({_shorten_digest(here) or 'missing'})"
                )
            )
    return found


def _list_differing_statement_entries(
    one: Mapping[str, str], other: Mapping[str, str]
) -> Iterator[tuple[str, str, str]]:
    for name in sorted({*one, *other}):
        if one.get(name, "") != other.get(name, ""):
            yield name, one.get(name, ""), other.get(name, "")


def _shorten_digest(digest: str) -> str:
    return digest[:12]


def _is_below(path: str) -> bool:
    """Return whether a path of a statement leads into rendered/ and to no other place."""
    parts = path.split("/")
    return parts[0] == RENDERED and not {"", ".", ".."} & {*parts}
