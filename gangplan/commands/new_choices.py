"""What a question of `gangplan new` offers: words of the format, names of the workspace, an example."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from gangplan.commands.ask import ask, say
from gangplan.contents.files import Files, block
from gangplan.contents.tables import claims, images, pools
from gangplan.errors import UserError
from gangplan.starter.fields import NewField
from gangplan.starter.new import New
from gangplan.starter.values import flow

TRUTHS = ("true", "false")
# How data is usually mounted or passed, by the kind of its store.
_PLACES = {"claim": "/data", "s3": "env"}


def hint_of(field: NewField) -> str:
    """Return what an answer looks like, from the example of the format."""
    example = field.example
    if field.shape in ("named", "map"):
        name, value = next(iter(example.items()))
        alone = f", or {name} alone, and each field is asked for" if field.parts else ""
        return f"such as {name}={flow(value)}{alone}"
    if field.path == ("command",):
        return f"such as {' '.join(example)}"
    return f"such as {example}" if isinstance(example, str | int) else ""


def default_of(wanted: New, field: NewField) -> str:
    """Return the default of a needed field, which Enter accepts; other fields are left out."""
    known = {"--environment": "dev", "--location": "on-prem"}
    if wanted.kind == "image" and field.flag == "--framework":
        return "mpi"
    return known.get(field.flag, "") if wanted.kind == "cluster" else ""


def clusters_of(wanted: New) -> list[str]:
    """Return the clusters whose file names the team."""
    files = Files(wanted.root)
    return [name for name, body in files.all_clusters.items() if wanted.team in block(body, "teams")]


def choices_of(wanted: New, field: NewField) -> list[str]:
    """Return what TAB completes to: words of the format, names of the workspace."""
    if field.choices or field.shape == "truth":
        return list(field.choices or TRUTHS)
    files = Files(wanted.root, (wanted.team,) if wanted.team else ())
    known: dict[str, Callable[[], Sequence[object]]] = {
        "--image": lambda: [row["image"] for row in images(files)],
        "--clusters": lambda: clusters_of(wanted) if wanted.kind == "job" else files.cluster_names,
        "--gpu-model": lambda: [row["model"] for row in pools(files) if row["model"]],
        "--data": lambda: [f"{row['name']}={_PLACES[row['kind']]}" for row in claims(files)],
        "--scope-team": lambda: files.team_names,
        "--scope-cluster": lambda: files.cluster_names,
        "--rule": _rules,
    }
    found = known.get(field.flag, tuple)()
    return list(dict.fromkeys(map(str, found)))


def _rules() -> list[str]:
    from gangplan.rulebook import built_in

    return sorted(built_in())


def is_name(answer: str) -> bool:
    """Return whether an answer is only the name of an entry, without its fields."""
    return re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", answer) is not None


def entry_of(name: str, field: NewField, fits: Callable[[str], object]) -> str:
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
            hint = f"such as {flow(example[part])}" if part in example else ""
            parts.append(f"{part}: {ask(f'{at}.{part}', hint=hint)}")
        hint = f"such as {flow(rest)[1:-1]}" if rest else ""
        more = ask(f"{at}, more fields", is_optional=True, hint=hint)
        entry = f"{name}={{{', '.join([*parts, more] if more else parts)}}}"
        try:
            fits(entry)
        except UserError as stop:
            say(f"{stop.message}. {stop.help or ''}".rstrip())
            continue
        return entry
