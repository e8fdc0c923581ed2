"""The files of an engine, built from flags and gangplan.yaml, each with a first line that says how to make it
again."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from gangplan.delivery.engine import EngineInput, EngineOption, GitopsEngine, find_delivery_engine
from gangplan.delivery.stated import SETTINGS_FILE, GitopsSettings
from gangplan.errors import UserError
from gangplan.gitops.made import add_gitops_command_headers, build_gitops_write_command
from gangplan.workspace import READ_FOLDERS, RENDERED

NOTHING = GitopsSettings()
NO_FLAGS: Mapping[str, Any] = MappingProxyType({})


def build_delivery_engine_files(
    engine: GitopsEngine,
    given: EngineInput,
    flags: Mapping[str, Any] = NO_FLAGS,
    said: GitopsSettings = NOTHING,
    bad: Sequence[UserError] = (),
) -> dict[str, str]:
    """Build the files, by their paths below the engine's home. `flags` take precedence over gangplan.yaml.

    Raises one UserError for all invalid values, together with what was `bad` before.
    """
    values: dict[str, Any] = dict(said.shared)
    words: list[tuple[str, Any]] = []
    wrong = list(bad)
    for option in engine.options:
        without = _find_stated_option_value(option, engine, said)
        value = flags.get(option.name)
        if value is None:
            value = without
            if option.find and value == option.default:
                value = option.find(replace(given, values=values))
        place = "" if option.name in flags else _locate_stated_delivery_option(option, engine, said)
        wrong += _find_delivery_option_name_errors(option, given, value, place)
        try:
            values[option.name] = _check_delivery_option_value(
                option, value, f"{option.name}:" if place else option.flag
            )
        except UserError as refused:
            wrong.append(UserError(f"{place}{refused.message}", refused.help))
            values[option.name] = option.default
            continue
        # The folder of the workspace distinguishes its files from those of another one in the repository.
        if values[option.name] != without or (option.name == "prefix" and without):
            words.append((option.flag, list(_format_delivery_option_as_flags(values[option.name]))))
    if wrong:
        raise _merge_errors_of_delivery_options(wrong)
    if engine.by_cluster:
        words.append(("--cluster", given.request.clusters))
    files = engine.files(replace(given, values=values, homes=list_delivery_engine_homes(said)))
    command = build_gitops_write_command(engine.name, words)
    return {
        path: text
        for name, text in files.items()
        for path, text in add_gitops_command_headers(
            command, {name: text}, _select_comment_mark(name)
        ).items()
    }


def _find_delivery_option_name_errors(
    option: EngineOption, given: EngineInput, value: Any, place: str
) -> list[UserError]:
    """Return an error for names that the workspace does not have."""
    try:
        if option.against:
            option.against(given, value)
    except UserError as unknown:
        return [UserError(f"{place}{unknown.message}", unknown.help)]
    return []


def resolve_delivery_engine_home(engine: GitopsEngine, said: GitopsSettings) -> str:
    """Return the folder of the workspace for an engine's files; empty for the top of the repository.

    Raises UserError for one outside the workspace, for its top, and for the folders that gangplan reads and
    renders, where these files would be taken for something else.
    """
    output = said.engines.get(engine.name, {}).get("output") or engine.home
    folder = os.path.normpath(output) if output else ""
    if folder.startswith("..") or os.path.isabs(folder):
        help = f"Name a folder in it, such as {engine.home}."
        raise UserError(f"{SETTINGS_FILE}: {engine.name}: output {output} is outside of the workspace", help)
    if folder.split("/")[0] in (".", *READ_FOLDERS, RENDERED):
        help = f"Name a folder for these files alone, such as {engine.home}."
        raise UserError(
            f"{SETTINGS_FILE}: {engine.name}: output {output} is a folder of the workspace itself", help
        )
    return folder


def list_delivery_engine_homes(said: GitopsSettings) -> dict[str, str]:
    """Return the folders of all engines that are listed, by name.

    Raises UserError for two in one folder: the files of both are named after clusters.
    """
    homes: dict[str, str] = {}
    for name in said.engines:
        folder = resolve_delivery_engine_home(find_delivery_engine(name), said)
        other = next((one for one, home in homes.items() if folder and home == folder), None)
        if other is not None:
            help = "Give each a folder of its own."
            raise UserError(f"{SETTINGS_FILE}: {other} and {name} have the same output, {folder}", help)
        homes[name] = folder
    return homes


def _find_stated_option_value(option: EngineOption, engine: GitopsEngine, said: GitopsSettings) -> Any:
    """Return the value that an option has without a flag."""
    own = said.engines.get(engine.name, {})
    found = own.get(option.name, said.shared.get(option.shared) if option.shared else None)
    return option.default if found is None else found


def _check_delivery_option_value(option: EngineOption, value: Any, words: str) -> Any:
    if option.is_needed and not value:
        stated = f"gitops: {{{option.name}: {option.example}}}"
        help = f"Write {option.flag} {option.example}, or state it in {SETTINGS_FILE}: {stated}."
        raise UserError(f"{option.flag} is missing", help)
    return option.check(value, words) if option.check else value


def _format_delivery_option_as_flags(value: Any) -> Iterator[str]:
    """Yield a value as flags give it."""
    if isinstance(value, Mapping):
        yield from (f"{name}={one}" for name, one in value.items())
    else:
        yield from value if isinstance(value, tuple | list) else (str(value),)


def _locate_stated_delivery_option(option: EngineOption, engine: GitopsEngine, said: GitopsSettings) -> str:
    """Return where gangplan.yaml states a value, for messages; empty if it does not."""
    for path in (("gitops", "engines", engine.name, option.name), ("gitops", option.shared)):
        if said.document is not None and _is_there(said, path):
            where = said.document.where(path)
            return f"{where.file}:{where.line}:{where.column}: "
    return ""


def _is_there(said: GitopsSettings, path: tuple[str, ...]) -> bool:
    return path[-1] in (said.engines.get(path[2], {}) if len(path) > 2 else said.shared)


def _merge_errors_of_delivery_options(wrong: list[UserError]) -> UserError:
    if len(wrong) == 1:
        return wrong[0]
    return UserError(
        "; ".join(one.message for one in wrong), " ".join(one.help for one in wrong if one.help) or None
    )


def _select_comment_mark(name: str) -> str:
    return "//" if name.endswith("Jenkinsfile") else "#"
