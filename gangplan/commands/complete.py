"""What a shell's TAB completes to: names of the workspace that the command would work on, read fast and silently.

Each function has the form that typer asks for: the words so far in, candidates out. Nothing here may print or
raise: a shell would show it in the middle of a line.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

# More candidates than this help nobody; the folders above them do.
_MOST = 100
_READ = ("specs", "overlays", "images", "policies", "schemas", "jobtemplates", "rendered")


def _quietly(find: Callable[[Path], Iterable[str]], ctx: Any, incomplete: str) -> list[str]:
    """The names that begin so; none outside a workspace, or where something cannot be read."""
    from gangplan.spec.root import root_of

    try:
        given = ctx.params.get("workspace")
        names = find(root_of(Path(given) if given else None))
        return [name for name in dict.fromkeys(names) if name.startswith(incomplete)]
    except Exception:  # noqa: BLE001  completion is no place for errors
        return []


def clusters(ctx: Any, incomplete: str) -> list[str]:
    """Names of clusters; of several with commas, the last one."""
    from gangplan.contents.files import Files

    return _quietly(lambda root: Files(root).cluster_names, ctx, incomplete)


def teams(ctx: Any, incomplete: str) -> list[str]:
    """Names of teams."""
    from gangplan.contents.files import Files

    return _quietly(lambda root: Files(root).team_names, ctx, incomplete)


def column(table: str, name: str) -> Callable[[Any, str], list[str]]:
    """Values of a column of what `gangplan list` shows: images, claims, GPU models."""

    def found(ctx: Any, incomplete: str) -> list[str]:
        from gangplan.contents.files import Files
        from gangplan.contents.tables import TABLES

        return _quietly(lambda root: _texts(TABLES[table](Files(root)), name), ctx, incomplete)

    return found


def of_team(table: str, name: str, end: str = "") -> Callable[[Any, str], list[str]]:
    """The same of the team that the command names, else of all; each with an `end`."""

    def found(ctx: Any, incomplete: str) -> list[str]:
        from gangplan.contents.files import Files
        from gangplan.contents.tables import TABLES

        team = ctx.params.get("team")
        teams = (team,) if isinstance(team, str) else ()

        def names(root: Path) -> Iterator[str]:
            return (f"{one}{end}" for one in _texts(TABLES[table](Files(root, teams)), name))

        return _quietly(names, ctx, incomplete)

    return found


def _texts(rows: Iterable[dict[str, Any]], name: str) -> Iterator[str]:
    return (str(row[name]) for row in rows if row[name] not in (None, ""))


def parameters(ctx: Any, incomplete: str) -> list[str]:
    """Parameters of the template that the command names, with =; of all templates where it names none."""
    from gangplan.contents.files import Files
    from gangplan.contents.tables import TABLES

    label = str(ctx.params.get("field_template") or "").partition("@")[0]

    def found(root: Path) -> Iterator[str]:
        rows = {str(row["template"]): row for row in TABLES["templates"](Files(root))}
        wanted = [label] if label else sorted(rows)
        while wanted:
            row = rows.pop(wanted.pop(0), None)
            if row is not None:
                yield from (f"{str(one).partition('=')[0]}=" for one in row["parameters"])
                wanted += [str(row["extends"]).partition("@")[0]] if row["extends"] else []

    return _quietly(found, ctx, incomplete)


def settings(ctx: Any, incomplete: str) -> list[str]:
    """Fields of the file that the command names, blocks with their dot."""
    from gangplan.starter.formats import format_of

    def found(root: Path) -> Iterator[str]:
        from gangplan.reference.fields import all_fields
        from gangplan.source import load_file

        file = os.path.relpath(os.path.abspath(_file(ctx)), root).replace(os.sep, "/")
        format = format_of(file, load_file(root / file, file)[0])
        return (".".join(one.path) for one in all_fields() if one.kind == format)

    return _quietly(found, ctx, incomplete)


def _file(ctx: Any) -> str:
    """The file that the command names. Where a flag still lacks its value, only the line of the shell has it."""
    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or ""
    return str(ctx.params.get("file") or next((one for one in line.split() if one.endswith(".yaml")), ""))


def words(*known: str) -> Callable[[str], list[str]]:
    """One of a few words."""

    def found(incomplete: str) -> list[str]:
        return [word for word in known if word.startswith(incomplete)]

    return found


def rules(incomplete: str) -> list[str]:
    """Rules by their ids."""
    from gangplan.rulebook import built_in

    return [name for name in sorted(built_in()) if name.startswith(incomplete)]


def pages(incomplete: str) -> list[str]:
    """What `explain` has a page of: rules, kinds of files, fields, packs."""
    from gangplan.policies import PACKS
    from gangplan.reference.fields import all_fields
    from gangplan.reference.topics import kinds

    fields = (name for one in all_fields() for name in (".".join(one.path), one.name))
    names = dict.fromkeys((*rules(incomplete), *kinds(), *PACKS, *fields))
    return [name for name in names if name.startswith(incomplete)]


def files(ctx: Any, incomplete: str) -> list[str]:
    """Files of the workspace as they are named from the current folder; of very many, the folders that hold them."""
    return _files(ctx, incomplete, _READ)


def specs(ctx: Any, incomplete: str) -> list[str]:
    """Those of them that are specs or templates."""
    return _files(ctx, incomplete, ("specs", "jobtemplates"), without="team.yaml")


def _files(ctx: Any, incomplete: str, tops: Iterable[str], without: str = "") -> list[str]:
    here = os.getcwd()

    def found(root: Path) -> Iterator[str]:
        for top in tops:
            for parent, folders, names in os.walk(root / top):
                folders[:] = sorted(name for name in folders if not name.startswith("."))
                relative = os.path.relpath(parent, here)
                if not _meets(relative, incomplete):
                    folders.clear()
                    continue
                own = (name for name in sorted(names) if name.endswith(".yaml") and name != without)
                yield from (os.path.join(relative, name) for name in own)

    matching = _quietly(found, ctx, incomplete)
    if len(matching) <= _MOST:
        return matching
    start = len(incomplete)
    return list(dict.fromkeys(name[: name.find("/", start) + 1] or name for name in matching))


def _meets(folder: str, incomplete: str) -> bool:
    """Whether something in a folder may begin with what is typed."""
    return f"{folder}/".startswith(incomplete) or incomplete.startswith(f"{folder}/")
