"""What a question of `gangplan new` offers: words of the format, names of the workspace, an example."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from gangplan.commands.ask import ask_user_on_terminal, print_below_question
from gangplan.contents.files import WorkspaceFiles, get_block
from gangplan.contents.tables import (
    list_workspace_claim_rows,
    list_workspace_image_rows,
    list_workspace_pool_rows,
)
from gangplan.errors import UserError
from gangplan.starter.fields import NewField
from gangplan.starter.new import NewFile
from gangplan.starter.values import format_flow_yaml

BOOLEAN_WORDS = ("true", "false")
# How data is usually mounted or passed, by the kind of its store.
_PLACES = {"claim": "/data", "s3": "env"}


def find_terminal_prompt_hint(field: NewField) -> str:
    """Return what an answer looks like, from the example of the format."""
    example = field.example
    if field.shape in ("named", "map"):
        name, value = next(iter(example.items()))
        alone = f", or {name} alone, and each field is asked for" if field.parts else ""
        return f"such as {name}={format_flow_yaml(value)}{alone}"
    if field.path == ("command",):
        return f"such as {' '.join(example)}"
    return f"such as {example}" if isinstance(example, str | int) else ""


def find_terminal_prompt_default(wanted: NewFile, field: NewField) -> str:
    """Return the default of a needed field, which Enter accepts; other fields are left out."""
    known = {"--environment": "dev", "--location": "on-prem"}
    if wanted.kind == "image" and field.flag == "--framework":
        return "mpi"
    return known.get(field.flag, "") if wanted.kind == "cluster" else ""


def list_team_clusters(wanted: NewFile) -> list[str]:
    """Return the clusters whose file names the team."""
    files = WorkspaceFiles(wanted.root)
    return [name for name, body in files.all_clusters.items() if wanted.team in get_block(body, "teams")]


def list_terminal_prompt_choices(wanted: NewFile, field: NewField) -> list[str]:
    """Return what TAB completes to: words of the format, names of the workspace."""
    if field.choices or field.shape == "truth":
        return list(field.choices or BOOLEAN_WORDS)
    files = WorkspaceFiles(wanted.root, (wanted.team,) if wanted.team else ())
    known: dict[str, Callable[[], Sequence[object]]] = {
        "--image": lambda: [row["image"] for row in list_workspace_image_rows(files)],
        "--clusters": lambda: list_team_clusters(wanted) if wanted.kind == "job" else files.cluster_names,
        "--gpu-model": lambda: [row["model"] for row in list_workspace_pool_rows(files) if row["model"]],
        "--data": lambda: [
            f"{row['name']}={_PLACES[row['kind']]}" for row in list_workspace_claim_rows(files)
        ],
        "--scope-team": lambda: files.team_names,
        "--scope-cluster": lambda: files.cluster_names,
        "--rule": _list_built_in_rules,
    }
    found = known.get(field.flag, tuple)()
    return list(dict.fromkeys(map(str, found)))


def _list_built_in_rules() -> list[str]:
    from gangplan.rulebook import load_built_in_rules

    return sorted(load_built_in_rules())


def is_bare_name(answer: str) -> bool:
    """Return whether an answer is only the name of an entry, without its fields."""
    return re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", answer) is not None


def ask_for_entry_on_terminal(name: str, field: NewField, fits: Callable[[str], object]) -> str:
    """Ask for the needed fields of an entry, and any others, and return NAME={...}.

    `fits` raises UserError for an invalid entry, which is asked for again.
    """
    example = next(iter(field.example.values()))
    example = example if isinstance(example, dict) else {}
    at = f"{'.'.join(field.path)}.{name}"
    rest = {part: value for part, value in example.items() if part not in field.parts}
    while True:
        parts = []
        for part in field.parts:
            hint = f"such as {format_flow_yaml(example[part])}" if part in example else ""
            parts.append(f"{part}: {ask_user_on_terminal(f'{at}.{part}', hint=hint)}")
        hint = f"such as {format_flow_yaml(rest)[1:-1]}" if rest else ""
        more = ask_user_on_terminal(f"{at}, more fields", is_optional=True, hint=hint)
        entry = f"{name}={{{', '.join([*parts, more] if more else parts)}}}"
        try:
            fits(entry)
        except UserError as stop:
            print_below_question(f"{stop.message}. {stop.help or ''}".rstrip())
            continue
        return entry
