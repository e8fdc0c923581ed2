"""The flags of `gangplan new KIND`: one for each field of the format, built when they are needed."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer
import typer.main

from gangplan.commands import complete
from gangplan.commands.flags import Quiet, Workspace
from gangplan.starter.fields import NewField, fields_of
from gangplan.starter.values import Given, flow

#: Other names for a field's flag that people try.
_ALSO = {
    "--clusters": ("--cluster",),
    "--labels": ("--label",),
    "--secrets": ("--secret",),
    "--parameters": ("--param", "-p"),
}
_METAVARS = {"integer": "N", "number": "N"}
_NAMES = {
    "job": "Name of the job, and of its file in specs/<team>/.",
    "team": "Name of the team, and of its folder in specs/.",
    "cluster": "Name of the cluster, and of its folder in overlays/.",
    "image": "Name of the image in images/catalog.yaml.",
    "waiver": "Name of the file in policies/waivers/.",
}


def parameters(kind: str) -> list[Any]:
    """Return the parameters of the command, which typer builds from a function's signature."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command()(_signed(kind))
    return list(typer.main.get_command(app).params)


def given_of(kind: str, params: dict[str, Any]) -> dict[str, Given]:
    """Return the values of the flags of fields, by the names of the flags."""
    return {field.flag: params.get(_variable(field)) for field in fields_of(kind)}


def _variable(field: NewField) -> str:
    return "field_" + field.flag.removeprefix("--").replace("-", "_")


def _signed(kind: str) -> Any:
    """Return a function that has a parameter per field and does nothing."""

    def command(**_: Any) -> None:
        pass

    signature: dict[str, tuple[Any, Any]] = {
        "name": (Annotated[str | None, typer.Argument(help=_NAMES[kind], metavar="NAME")], None),
        "workspace": (Workspace, None),
    }
    if kind == "job":
        help = "Team that the job belongs to (default: that of the current folder, or the only one)."
        signature["team"] = (
            Annotated[
                str | None, typer.Option("--team", help=help, metavar="NAME", autocompletion=complete.teams)
            ],
            None,
        )
    for field in fields_of(kind):
        signature[_variable(field)] = (_annotation(field), None)
    help = "Print the file, write nothing."
    signature["dry_run"] = (Annotated[bool, typer.Option("--dry-run", "-n", help=help)], False)
    signature["quiet"] = (Quiet, False)
    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
            for name, (annotation, default) in signature.items()
        ]
    )
    command.__annotations__ = {name: annotation for name, (annotation, _) in signature.items()}
    return command


def _annotation(field: NewField) -> Any:
    flags = (field.flag, *_ALSO.get(field.flag, ()))
    if field.shape == "truth":
        no = f"{field.flag}/--no-{field.flag.removeprefix('--')}"
        return Annotated[bool | None, typer.Option(no, help=_help(field), show_default=False)]
    metavar = {"map": "NAME=VALUE", "named": "NAME={...}", "blocks": "{...}"}.get(
        field.shape, _METAVARS.get(field.types[0], "TEXT")
    )
    option = typer.Option(
        *flags, help=_help(field), metavar=metavar, show_default=False, autocompletion=_candidates(field)
    )
    kind = str | None if field.shape == "value" else list[str] | None
    return Annotated[kind, option]


def _candidates(field: NewField) -> Callable[..., list[str]] | None:
    """Return what TAB completes the value to: words of the format, names of the workspace."""
    if field.choices:
        return complete.words(*field.choices)
    known: dict[str, Callable[..., list[str]]] = {
        "--image": complete.of_team("images", "image"),
        "--defaults-image": complete.column("images", "image"),
        "--template": complete.of_team("templates", "template"),
        "--parameters": complete.parameters,
        "--clusters": complete.clusters,
        "--gpu-model": complete.of_team("pools", "model"),
        "--placement-node-pool": complete.of_team("pools", "pool"),
        **dict.fromkeys(
            ("--placement-near", "--placement-apart", "--after"), complete.of_team("specs", "job")
        ),
        "--network-egress": complete.of_team("endpoints", "endpoint"),
        "--secrets-files": complete.of_team("secrets", "name", "="),
        "--data": complete.of_team("claims", "name", "="),
        "--queue": complete.of_team("queues", "queue"),
        "--checkpoint-to": complete.of_team("claims", "name"),
        "--policies-packs": complete.packs,
        "--rule": complete.rules,
        "--scope-team": complete.teams,
        "--scope-cluster": complete.clusters,
        "--scope-job": complete.column("specs", "job"),
    }
    found = known.get(field.flag)
    return complete.several(found) if found and field.shape == "list" else found


def _help(field: NewField) -> str:
    """Return the field's description, its choices or an example, and whether it may be repeated or is
    required."""
    words = field.description
    if field.choices:
        words += f" One of {', '.join(field.choices)}."
    elif field.example is not None and field.shape in ("named", "blocks"):
        example = field.example
        if isinstance(example, dict):
            name, value = next(iter(example.items()))
            words += f" For example '{name}={flow(value)}'."
        else:
            words += f" For example '{flow(example[0])}'."
    if field.shape != "value" and field.shape != "truth":
        words += " May be repeated."
    if field.is_required:
        words += " Required."
    return words
