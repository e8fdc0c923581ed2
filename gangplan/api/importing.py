"""Jobs of other systems that a program has as values, such as what boto3 returns for a training job."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gangplan.errors import UserError
from gangplan.imports.batch import Batch, import_source_given_as_value, judge_import_batch
from gangplan.imports.draft import ImportAnswers, ImportTarget
from gangplan.imports.kinds import SOURCE_KINDS
from gangplan.workspace import load_workspace


def import_job_from_python_value(
    root: Path, kind: str, source: Mapping[str, Any], team: str, image: str, command: str
) -> Batch:
    """Import one job of a kind (those of `gangplan import`), and compare it with its runs.

    Raises TypeError if the source is not a mapping, UserError for an unknown kind or team, and if the source
    cannot be imported or is not exactly one job.
    """
    if not isinstance(source, Mapping):
        raise TypeError(f"a source is a dict, not {type(source).__name__}")
    kinds = [name for name, one in SOURCE_KINDS.items() if one.finder is None]
    if kind not in kinds:
        help = f"Kinds: {', '.join(kinds)}; gangplan import reads others from files."
        raise UserError(f"there is no kind '{kind}' of values to import", help)
    workspace = load_workspace(root)
    if team not in workspace.teams:
        raise UserError(f"there is no team '{team}'", f"Teams: {', '.join(workspace.teams)}.")
    target = ImportTarget(workspace, team, ImportAnswers(image, command, {}, False))
    batch = import_source_given_as_value(SOURCE_KINDS[kind], source, target)
    if len(batch.imported) != 1:
        refused = batch.findings[0] if batch.findings else None
        message = refused.message if refused else f"the source has {len(batch.imported)} jobs"
        where = f"{refused.where}: " if refused else ""
        raise UserError(f"{where}{message}", (refused.help if refused else "Import them one by one.") or None)
    judge_import_batch(batch, root)
    return batch
