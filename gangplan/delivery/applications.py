"""Objects that another Application of Argo CD holds from a change on, because a team or a cluster has another
name.

Argo CD calls an object shared as long as its tracking id names another Application, whether that one is there
or not (v3.5.1, controller/state.go, CompareAppState). Applications have FailOnSharedResource, so that every
sync of the new one fails.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gangplan.delivery.stated import GitopsSettings, read_delivery_settings
from gangplan.findings import Finding, Location
from gangplan.model.syncing import ARGO_TRACKING_ID
from gangplan.pipeline.base import TextsByPath
from gangplan.resolve.platform import list_sync_engines
from gangplan.rules.lifecycle import APP_MOVED
from gangplan.source import ManifestError, load_objects
from gangplan.tools.git import read_files_at
from gangplan.workspace import RENDERED, Workspace

ENGINE = "argocd"
# The Application of each object: its kind, namespace and name.
Holders = dict[tuple[str, str, str], str]


def check_applications_since(workspace: Workspace, commit: str, today: TextsByPath) -> list[Finding]:
    """Return a finding for each team and each cluster whose objects another Application holds than at a
    commit. Raises ToolError without git."""
    said, _ = read_delivery_settings(workspace.root)
    if ENGINE not in said.engines:
        return []
    earlier = read_files_at(workspace.root, commit, RENDERED)
    before = {path: data.decode("utf-8", "replace") for path, data in earlier.items()}
    return [
        finding
        for old, new in _pair_renamed_folders(workspace, said, before, today)
        if (finding := _compare_holders(workspace, old, new, before, today))
    ]


def _pair_renamed_folders(
    workspace: Workspace, said: GitopsSettings, before: TextsByPath, today: TextsByPath
) -> Iterator[tuple[str, str]]:
    """Yield folders that left, each with those that came on the same cluster of Argo CD."""
    places: Mapping[str, str] = said.engines[ENGINE].get("destination") or {}
    synced = {name for name, file in workspace.clusters.items() if ENGINE in list_sync_engines(file.spec)}
    for depth in (1, 3):
        was, now = (
            {"/".join(path.split("/")[:depth]) for path in tree if depth == 1 or path.split("/")[1] == "runs"}
            for tree in (before, today)
        )
        for new in sorted(now - was):
            cluster = new.partition("/")[0]
            for old in sorted(was - now) if cluster in synced else ():
                other = old.partition("/")[0]
                if places.get(other, other) == places.get(cluster, cluster) and (
                    depth == 1 or other == cluster
                ):
                    yield old, new


def _compare_holders(
    workspace: Workspace, old: str, new: str, before: TextsByPath, today: TextsByPath
) -> Finding | None:
    """Return the finding about objects that are in one folder at the commit and in another one today."""
    held, holds = _find_holders(old, before), _find_holders(new, today)
    moved = [key for key in held if key in holds]
    if not moved:
        return None
    apps = sorted({held[key] for key in moved})
    cluster, _, rest = new.partition("/")
    document = workspace.clusters[cluster].document
    where = document.where(("teams", rest.split("/")[1])) if rest else Location(document.file, 1, 1)
    kind, namespace, name = moved[0]
    such = f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"
    count = f"{len(moved)} objects, such as {such}, move" if len(moved) > 1 else f"{such} moves"
    message = (
        f"{count} from Application {held[moved[0]]} to {holds[moved[0]]}: Argo CD calls an object shared"
        " as long as its tracking id names another Application, so every sync of the new one fails"
    )
    what = "team" if rest else "cluster"
    help = (
        f"Keep the earlier name of the {what}, or once this is merged: argocd app delete {' '.join(apps)}"
        f" --cascade=false, then kubectl annotate -R -f {RENDERED}/{new} {ARGO_TRACKING_ID}- (what is new is"
        " not found yet, which does no harm)."
    )
    return Finding(APP_MOVED, where, message, help, clusters=(cluster,))


def _find_holders(folder: str, tree: TextsByPath) -> Holders:
    """Return the objects below a folder; files that cannot be read are reported elsewhere."""
    found: Holders = {}
    for path, text in tree.items():
        if not path.startswith(f"{folder}/") or not path.endswith(".yaml"):
            continue
        cluster, part, team, *rest = [*path.split("/"), ""]
        app = f"{cluster}-{part}-{team}" if part == "runs" and rest else f"{cluster}-{part}"
        try:
            bodies = load_objects(text)
        except ManifestError:
            continue
        for body in bodies:
            metadata = body.get("metadata") or {}
            key = str(body.get("kind")), str(metadata.get("namespace") or ""), str(metadata.get("name"))
            found[key] = app
    return found
