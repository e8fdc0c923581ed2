"""`gangplan import overlay`: converts strategic merges to JSON6902 patches of a cluster's overlay."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from gangplan.commands.absent import build_missing_cluster_error
from gangplan.commands.common import choose_exit_code, print_findings_to_stderr
from gangplan.errors import Exit, UserError
from gangplan.findings import sort_findings
from gangplan.imports.overlay import (
    ConvertedPatch,
    append_imported_patches,
    convert_imported_patches,
    read_imported_patches,
)
from gangplan.imports.sources import list_files_to_import
from gangplan.imports.write import write_imported_files
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.source import load_objects
from gangplan.spec.root import locate_workspace_root
from gangplan.workspace import load_workspace


def run_import_overlay_command(
    named: Sequence[Path], workspace: Path | None, cluster: str, applies: bool
) -> Exit:
    """Convert everything that is named. Raises UserError for invalid flags and files."""
    root = locate_workspace_root(workspace)
    loaded = load_workspace(root)
    if cluster not in loaded.clusters:
        raise build_missing_cluster_error(cluster, loaded)
    patches, findings = read_imported_patches(list_files_to_import(named))
    if not patches and not any(one.is_error for one in findings):
        raise UserError(
            "there is no strategic merge in what is named", "Name patches, or a kustomization.yaml."
        )
    result = preview_render(Request(root, engine="serial"))
    texts = [text for path, text in sorted(result.texts.items()) if path.startswith(f"{cluster}/")]
    objects = [body for text in texts for body in load_objects(text)]
    if not objects:
        raise UserError(
            f"nothing is rendered for cluster '{cluster}'", "Correct what gangplan validate reports first."
        )
    made, wrong = convert_imported_patches(patches, objects, cluster)
    findings += wrong
    print_findings_to_stderr(sort_findings(findings))
    for one in made:
        sys.stdout.write(f"# {one.source.where}: {one.source.name}\n{one.text()}")
    if made and applies and not any(one.is_error for one in findings):
        _add_imported_patches_for_apply_flag(root, cluster, made)
    return choose_exit_code(findings)


def _add_imported_patches_for_apply_flag(root: Path, cluster: str, made: Sequence[ConvertedPatch]) -> None:
    name = f"overlays/{cluster}/kustomization.yaml"
    path = root / name
    before = path.read_bytes() if path.is_file() else None
    after = append_imported_patches(before.decode() if before is not None else None, made)
    if after is None:
        raise UserError(f"{name} is written so that patches cannot be added to it", "Add them yourself.")
    write_imported_files(root, {}, {name: before}, {name: after.encode()})
    sys.stdout.write(f"added {len(made)} patch{'' if len(made) == 1 else 'es'} to {name}\n")
