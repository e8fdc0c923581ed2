"""kubeconform's verdict on a rendered tree, if it is installed: a second judge of the same schemas."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from gangplan.emit import read_header_source
from gangplan.findings import Finding, Location, assign_cluster
from gangplan.resolve.platform import resolve_platform_of_cluster_file
from gangplan.rules.objects import KUBECONFORM
from gangplan.tools.kubeconform import Kubeconform, KubeconformVerdict, find_kubeconform
from gangplan.validate.apiserver.schema import SchemaVersions, write_schemas
from gangplan.validate.versions import choose_schema_versions_of
from gangplan.workspace import RENDERED, Workspace

# gangplan has just written every file here: an object's kind is alone on its line, and no letter of a key is
# escaped.
_KIND = re.compile(r'^kind: "?([A-Za-z]+)"?$', re.MULTILINE)
_WORD = re.compile(r"[A-Za-z0-9$_-]+")


def ask_kubeconform_for_second_opinion(
    workspace: Workspace,
    tree: Path,
    passed_over: list[str] | None = None,
    telling: Collection[str] | None = None,
    standing: Collection[str] = (),
    rest: Callable[[], Collection[str]] = tuple,
) -> tuple[str, list[Finding]]:
    """Return the judge's name and its findings; the name is empty if kubeconform is absent.

    `standing` are files of the workspace's `rendered/` that belong to the tree and are not in it, and so are
    the `rest`, which are not telling.

    `telling` are the files, by their paths in the tree, that have all schema facts of the others
    (validate/apiserver/schema_facts.py): if these are good, so are the others, and if one is not, all are
    judged. None: judge all.

    A program of that name that cannot be used is named in `passed_over`: callers that count on a second
    opinion must know that there was none.
    """
    judge = find_kubeconform(passed_over)
    if judge is None:
        return "", []
    homes = {
        **dict.fromkeys(standing, workspace.root / RENDERED),
        **{file.relative_to(tree).as_posix(): tree for file in tree.rglob("*.yaml")},
    }
    found = _judge_files_by_kubeconform(judge, workspace, homes, telling)
    if found and (more := rest()):
        found = _judge_files_by_kubeconform(
            judge, workspace, {**dict.fromkeys(more, workspace.root / RENDERED), **homes}, telling
        )
    return judge.label, found


def _judge_files_by_kubeconform(
    judge: Kubeconform, workspace: Workspace, homes: Mapping[str, Path], telling: Collection[str] | None
) -> list[Finding]:
    """Return the findings about files of all clusters; `homes` are the folders of the files."""
    clusters: dict[str, list[str]] = {}
    for path in sorted(homes):
        clusters.setdefault(path.partition("/")[0], []).append(path)
    alike: dict[SchemaVersions, dict[str, list[str]]] = {}
    for name, paths in clusters.items():
        alike.setdefault(
            choose_schema_versions_of(resolve_platform_of_cluster_file(workspace.clusters[name])), {}
        )[name] = paths
    return [
        one
        for found in alike.items()
        for one in _judge_clusters_by_kubeconform(judge, homes, *found, telling)
    ]


def find_judge_name() -> str:
    """Return the name of the second judge; empty without one."""
    judge = find_kubeconform()
    return judge.label if judge else ""


def _judge_clusters_by_kubeconform(
    judge: Kubeconform,
    homes: Mapping[str, Path],
    versions: SchemaVersions,
    clusters: Mapping[str, list[str]],
    telling: Collection[str] | None,
) -> list[Finding]:
    """Return the findings about all clusters with the same versions; if their telling files are good, all
    are.

    `clusters` are the files of each, and `homes` the folders of the files.
    """
    if telling is not None:
        chosen = {cluster: [path for path in paths if path in telling] for cluster, paths in clusters.items()}
        told = [item for item in chosen.items() if item[1]]
        found = [one for item in told for one in _judge_cluster_by_kubeconform(judge, homes, versions, *item)]
        if not found or chosen == clusters:
            return found
    return [
        one
        for item in clusters.items()
        for one in _judge_cluster_by_kubeconform(judge, homes, versions, *item)
    ]


def _judge_cluster_by_kubeconform(
    judge: Kubeconform, homes: Mapping[str, Path], versions: SchemaVersions, cluster: str, paths: list[str]
) -> list[Finding]:
    files = [homes[path] / path for path in paths]
    texts = [file.read_text(encoding="utf-8") for file in files]
    kinds = {kind for text in texts for kind in _KIND.findall(text)}
    words = {word for text in texts for word in _WORD.findall(text)}
    with tempfile.TemporaryDirectory(prefix="gangplan-") as schemas:
        verdicts = judge.check(files, write_schemas(versions, Path(schemas), kinds, words))
    return assign_cluster(
        cluster, (_build_kubeconform_finding(verdict) for verdict in verdicts if verdict.status != "valid")
    )


def _build_kubeconform_finding(verdict: KubeconformVerdict) -> Finding:
    source = read_header_source(verdict.file) or verdict.file.name
    message = f"kubeconform: {verdict.message}"
    return Finding(
        KUBECONFORM,
        Location(source, 1, 1),
        message,
        "",
        f"{verdict.kind}/{verdict.name}",
        verdict.path,
    )
