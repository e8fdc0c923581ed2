"""Completion by TAB: names of the workspace that the command would work on, read quickly and silently.

Each function has the form that typer asks for: it takes the words so far and returns candidates. None may
print or raise: a shell would show it in the middle of a line.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

# More candidates than this do not help; the folders above them do.
_MOST = 100
_KIND = re.compile(rb"^kind:[ \t]*[\"']?([A-Za-z]+)", re.MULTILINE)
_LISTED = re.compile(r"(?:^|: )((?:[a-z0-9-]+, )*[a-z0-9-]+) or ([a-z0-9-]+)[.;:]")
_READ = ("specs", "overlays", "images", "policies", "schemas", "jobtemplates", "rendered")


def _complete_names_on_tab(find: Callable[[Path], Iterable[str]], ctx: Any, incomplete: str) -> list[str]:
    """Return the names with this beginning; none outside a workspace, or if something cannot be read."""
    from gangplan.spec.root import locate_workspace_root

    try:
        given = ctx.params.get("workspace")
        names = find(locate_workspace_root(Path(given) if given else None))
        return [name for name in dict.fromkeys(names) if name.startswith(incomplete)]
    except Exception:  # noqa: BLE001  completion must not fail
        return []


def build_list_tab_completion(find: Callable[[Any, str], list[str]]) -> Callable[[Any, str], list[str]]:
    """Return a completion of the last of several names with commas, without those already typed."""

    def found(ctx: Any, incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        return [f"{before}{comma}{name}" for name in find(ctx, last) if name not in before.split(",")]

    return found


def complete_clusters_on_tab(ctx: Any, incomplete: str) -> list[str]:
    """Return names of clusters."""
    from gangplan.contents.files import WorkspaceFiles

    return _complete_names_on_tab(lambda root: WorkspaceFiles(root).cluster_names, ctx, incomplete)


def complete_teams_on_tab(ctx: Any, incomplete: str) -> list[str]:
    """Return names of teams."""
    from gangplan.contents.files import WorkspaceFiles

    return _complete_names_on_tab(lambda root: WorkspaceFiles(root).team_names, ctx, incomplete)


def build_column_tab_completion(table: str, name: str) -> Callable[[Any, str], list[str]]:
    """Return a completion for the values of a column of `gangplan list`: images, claims, GPU models."""

    def found(ctx: Any, incomplete: str) -> list[str]:
        from gangplan.contents.files import WorkspaceFiles
        from gangplan.contents.tables import LISTING_TABLES

        return _complete_names_on_tab(
            lambda root: _list_column_texts(LISTING_TABLES[table](WorkspaceFiles(root)), name),
            ctx,
            incomplete,
        )

    return found


def build_team_tab_completion(table: str, name: str, end: str = "") -> Callable[[Any, str], list[str]]:
    """Return the same for the team of the command, else for all teams; each value gets an `end`."""

    def found(ctx: Any, incomplete: str) -> list[str]:
        from gangplan.commands.teams_of import resolve_team_flag
        from gangplan.contents.files import WorkspaceFiles
        from gangplan.contents.tables import LISTING_TABLES

        def names(root: Path) -> Iterator[str]:
            team = resolve_team_flag(root, ctx.params.get("team"))
            rows = LISTING_TABLES[table](WorkspaceFiles(root, (team,) if team else ()))
            return (f"{one}{end}" for one in _list_column_texts(rows, name))

        return _complete_names_on_tab(names, ctx, incomplete)

    return found


def _list_column_texts(rows: Iterable[dict[str, Any]], name: str) -> Iterator[str]:
    return (str(row[name]) for row in rows if row[name] not in (None, ""))


def complete_template_parameters_on_tab(ctx: Any, incomplete: str) -> list[str]:
    """Return parameters of the template in the command, each with =; without one, those of all templates."""
    from gangplan.contents.files import WorkspaceFiles
    from gangplan.contents.tables import LISTING_TABLES

    label = str(ctx.params.get("field_template") or "").partition("@")[0]

    def found(root: Path) -> Iterator[str]:
        rows = {str(row["template"]): row for row in LISTING_TABLES["templates"](WorkspaceFiles(root))}
        wanted = [label] if label else sorted(rows)
        while wanted:
            row = rows.pop(wanted.pop(0), None)
            if row is not None:
                yield from (f"{str(one).partition('=')[0]}=" for one in row["parameters"])
                wanted += [str(row["extends"]).partition("@")[0]] if row["extends"] else []

    return _complete_names_on_tab(found, ctx, incomplete)


def complete_settings_on_tab(ctx: Any, incomplete: str) -> list[str]:
    """Return fields of the file in the command, or of a spec without one; blocks end with a dot."""
    from gangplan.starter.formats import find_file_format

    # A flag without its value leaves the arguments where they were read.
    named = ctx.params.get("file") or next(iter(ctx.args), None)

    def found(root: Path) -> Iterator[str]:
        from gangplan.reference.fields import list_all_format_fields
        from gangplan.source import load_file

        format = "spec"
        if named:
            file = os.path.relpath(os.path.abspath(named), root).replace(os.sep, "/")
            format = find_file_format(file, load_file(root / file, file)[0])
        return (".".join(one.path) for one in list_all_format_fields() if one.kind == format)

    return _complete_names_on_tab(found, ctx, incomplete)


def build_word_tab_completion(*known: str) -> Callable[[str], list[str]]:
    """Return a completion for a few words that the help of the flag does not list in full."""

    def found(incomplete: str) -> list[str]:
        return [word for word in known if word.startswith(incomplete)]

    return found


def list_help_words(help: str) -> list[str]:
    """Return the words in the help of a flag: `text or json.`, `Colour findings: auto, always or never.`"""
    found = _LISTED.search(re.sub(r" \([^)]*\)", "", help))
    return [*found[1].split(", "), found[2]] if found else []


def complete_rules_on_tab(ctx: Any, incomplete: str) -> list[str]:
    """Return the ids of rules."""
    from gangplan.rulebook import load_built_in_rules

    return [name for name in sorted(load_built_in_rules()) if name.startswith(incomplete)]


def complete_packs_on_tab(ctx: Any, incomplete: str) -> list[str]:
    """Return the policy packs that come with gangplan."""
    from gangplan.policies import BUILTIN_PACKS

    return [name for name in BUILTIN_PACKS if name.startswith(incomplete)]


def complete_explain_pages_on_tab(incomplete: str) -> list[str]:
    """Return what `explain` has a page for: rules, kinds of files, fields, packs."""
    from gangplan.policies import BUILTIN_PACKS
    from gangplan.reference.fields import list_all_format_fields
    from gangplan.reference.topics import list_file_kinds

    fields = (name for one in list_all_format_fields() for name in (".".join(one.path), one.name))
    names = dict.fromkeys(
        (*complete_rules_on_tab(None, incomplete), *list_file_kinds(), *BUILTIN_PACKS, *fields)
    )
    return [name for name in names if name.startswith(incomplete)]


def complete_files_on_tab(ctx: Any, incomplete: str) -> list[str]:
    """Return files of the workspace, relative to the current folder; if there are too many, their folders."""
    return _complete_workspace_files_on_tab(ctx, incomplete, _READ)


def complete_jobs_on_tab(ctx: Any, incomplete: str) -> list[str]:
    """Return specs of jobs."""
    return _complete_workspace_files_on_tab(ctx, incomplete, ("specs",), "TrainingJob")


def complete_clone_sources_on_tab(ctx: Any, incomplete: str) -> list[str]:
    """Return what can be copied: specs and templates."""
    return _complete_workspace_files_on_tab(
        ctx, incomplete, ("specs", "jobtemplates"), "TrainingJob", "Sweep", "JobTemplate"
    )


def _complete_workspace_files_on_tab(
    ctx: Any, incomplete: str, tops: Iterable[str], *kinds: str
) -> list[str]:
    """Return files of some kinds below some folders; if there are too many, their folders."""
    here = os.getcwd()

    def found(root: Path) -> Iterator[str]:
        for top in tops:
            for parent, folders, names in os.walk(root / top):
                folders[:] = sorted(name for name in folders if not name.startswith("."))
                relative = os.path.relpath(parent, here)
                if not _can_contain_typed_path(relative, incomplete):
                    folders.clear()
                    continue
                yield from (os.path.join(relative, name) for name in sorted(names) if name.endswith(".yaml"))

    matching = _complete_names_on_tab(found, ctx, incomplete)
    if len(matching) <= _MOST:
        return [name for name in matching if not kinds or _find_kind_for_tab_completion(name) in kinds]
    start = len(incomplete)
    return list(dict.fromkeys(name[: name.find("/", start) + 1] or name for name in matching))


def _find_kind_for_tab_completion(file: str) -> str:
    """Return the kind in a file, found without parsing its YAML."""
    from gangplan.contents.files import read_contents

    found = _KIND.search(read_contents(file))
    return found[1].decode() if found else ""


def _can_contain_typed_path(folder: str, incomplete: str) -> bool:
    """Return whether a path in a folder may begin with what was typed."""
    return f"{folder}/".startswith(incomplete) or incomplete.startswith(f"{folder}/")
