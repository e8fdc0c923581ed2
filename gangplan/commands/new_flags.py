"""The flags of `gangplan new KIND`: one for each field of the format, built when they are needed."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer
import typer.main

from gangplan.commands import complete
from gangplan.commands.flags import QuietFlag, WorkspaceFlag
from gangplan.starter.fields import NewField, fields_of
from gangplan.starter.values import FlagText, format_flow_yaml

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


def build_flag_parameters(kind: str) -> list[Any]:
    """Return the parameters of the command, which typer builds from a function's signature."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command()(_build_typer_new_command(kind))
    return list(typer.main.get_command(app).params)


def collect_given_fields(kind: str, params: dict[str, Any]) -> dict[str, FlagText]:
    """Return the values of the flags of fields, by the names of the flags."""
    return {field.flag: params.get(_format_flag_variable(field)) for field in fields_of(kind)}


def _format_flag_variable(field: NewField) -> str:
    return "field_" + field.flag.removeprefix("--").replace("-", "_")


def _build_typer_new_command(kind: str) -> Any:
    """Return a function that has a parameter per field and does nothing."""

    def command(**_: Any) -> None:
        pass

    signature: dict[str, tuple[Any, Any]] = {
        "name": (Annotated[str | None, typer.Argument(help=_NAMES[kind], metavar="NAME")], None),
        "workspace": (WorkspaceFlag, None),
    }
    if kind == "job":
        help = "Team that the job belongs to (default: that of the current folder, or the only one)."
        signature["team"] = (
            Annotated[
                str | None,
                typer.Option(
                    "--team", help=help, metavar="NAME", autocompletion=complete.complete_teams_on_tab
                ),
            ],
            None,
        )
    for field in fields_of(kind):
        signature[_format_flag_variable(field)] = (_build_flag_annotation(field), None)
    help = "Print the file, write nothing."
    signature["dry_run"] = (Annotated[bool, typer.Option("--dry-run", "-n", help=help)], False)
    signature["quiet"] = (QuietFlag, False)
    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
            for name, (annotation, default) in signature.items()
        ]
    )
    command.__annotations__ = {name: annotation for name, (annotation, _) in signature.items()}
    return command


def _build_flag_annotation(field: NewField) -> Any:
    flags = (field.flag, *_ALSO.get(field.flag, ()))
    if field.shape == "truth":
        no = f"{field.flag}/--no-{field.flag.removeprefix('--')}"
        return Annotated[
            bool | None, typer.Option(no, help=_format_help_text_of_flag(field), show_default=False)
        ]
    metavar = {"map": "NAME=VALUE", "named": "NAME={...}", "blocks": "{...}"}.get(
        field.shape, _METAVARS.get(field.types[0], "TEXT")
    )
    option = typer.Option(
        *flags,
        help=_format_help_text_of_flag(field),
        metavar=metavar,
        show_default=False,
        autocompletion=_build_flag_completion(field),
    )
    kind = str | None if field.shape == "value" else list[str] | None
    return Annotated[kind, option]


def _build_flag_completion(field: NewField) -> Callable[..., list[str]] | None:
    """Return what TAB completes the value to: words of the format, names of the workspace."""
    if field.choices:
        return complete.build_word_tab_completion(*field.choices)
    known: dict[str, Callable[..., list[str]]] = {
        "--image": complete.build_team_tab_completion("images", "image"),
        "--defaults-image": complete.build_column_tab_completion("images", "image"),
        "--template": complete.build_team_tab_completion("templates", "template"),
        "--parameters": complete.complete_template_parameters_on_tab,
        "--clusters": complete.complete_clusters_on_tab,
        "--gpu-model": complete.build_team_tab_completion("pools", "model"),
        "--placement-node-pool": complete.build_team_tab_completion("pools", "pool"),
        **dict.fromkeys(
            ("--placement-near", "--placement-apart", "--after"),
            complete.build_team_tab_completion("specs", "job"),
        ),
        "--network-egress": complete.build_team_tab_completion("endpoints", "endpoint"),
        "--secrets-files": complete.build_team_tab_completion("secrets", "name", "="),
        "--data": complete.build_team_tab_completion("claims", "name", "="),
        "--queue": complete.build_team_tab_completion("queues", "queue"),
        "--checkpoint-to": complete.build_team_tab_completion("claims", "name"),
        "--policies-packs": complete.complete_packs_on_tab,
        "--rule": complete.complete_rules_on_tab,
        "--scope-team": complete.complete_teams_on_tab,
        "--scope-cluster": complete.complete_clusters_on_tab,
        "--scope-job": complete.build_column_tab_completion("specs", "job"),
    }
    found = known.get(field.flag)
    return complete.build_list_tab_completion(found) if found and field.shape == "list" else found


def _format_help_text_of_flag(field: NewField) -> str:
    """Return the field's description, its choices or an example, and whether it may be repeated or is
    required."""
    words = field.description
    if field.choices:
        words += f" One of {', '.join(field.choices)}."
    elif field.example is not None and field.shape in ("named", "blocks"):
        example = field.example
        if isinstance(example, dict):
            name, value = next(iter(example.items()))
            words += f" For example '{name}={format_flow_yaml(value)}'."
        else:
            words += f" For example '{format_flow_yaml(example[0])}'."
    if field.shape != "value" and field.shape != "truth":
        words += " May be repeated."
    if field.is_required:
        words += " Required."
    return words
