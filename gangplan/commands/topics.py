"""What `gangplan explain` knows beside rules and fields: file formats by their kind, and policy packs."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterable

from gangplan.commands.fields import FILES, all_fields
from gangplan.commands.schema import models
from gangplan.rules import PACKS, rules
from gangplan.source import load_objects

WIDTH = 100


def kinds() -> dict[str, str]:
    """The kinds of files, as `kind:` has them, with the names of their formats."""
    return {model.__name__: name for name, model in models().items()}


def packs() -> list[str]:
    """The packs that come with gangplan."""
    return sorted(file.parent.name for file in PACKS.glob("*/pack.yaml"))


def topic_text(name: str) -> str:
    """The page of a kind or a pack for a terminal; empty for neither."""
    by_letters = {kind.lower(): kind for kind in kinds()}
    if name.lower() in by_letters:
        return kind_text(by_letters[name.lower()])
    return pack_text(name) if name in packs() else ""


def kind_text(kind: str) -> str:
    """The page of a file format: what it is, where its files stand, its fields."""
    format = kinds()[kind]
    own = [one for one in all_fields() if one.kind == format and len(one.path) == 1]
    width = max(len(one.path[0]) for one in own)
    lines = [f"{kind} ({FILES[format]})", "", _filled(inspect.getdoc(models()[format]) or ""), "", "fields:"]
    for one in own:
        meaning = one.facts["meaning"].replace("`", "").replace("\\|", "|")
        head = f"  {one.path[0]:{width}}  "
        lines.append(_filled(meaning, head, " " * len(head)))
    lines += [
        "",
        f"gangplan explain {format}.FIELD tells more; gangplan schema print {format} is for editors.",
    ]
    return "\n".join(lines) + "\n"


def pack_text(name: str) -> str:
    """The page of a pack: what it is for, whom it holds for, its policies and those of others."""
    (pack,) = load_objects((PACKS / name / "pack.yaml").read_text(encoding="utf-8"))
    scope = pack.get("scope", "teams")
    holds = "every namespace of a team" if scope == "teams" else f"what bears gangplan.dev/{scope['label']}"
    lines = [f"{name} (policy pack)", "", _filled(pack["title"]), "", _filled(f"Why: {pack['why']}"), ""]
    lines += [f"Holds for {holds}, on clusters that list it under policies.packs."]
    for what, listed in (("needs", pack.get("needs", ())), ("uses", pack.get("uses", {}))):
        lines += [_filled(", ".join(listed), f"{what}: ", " " * (len(what) + 2))] if listed else []
    lines += ["", "policies:", *_policies(pack["policies"])]
    return "\n".join(lines) + "\n"


def _policies(names: Iterable[str]) -> list[str]:
    width = max(map(len, names), default=0)
    head = " " * (width + 4)
    return [_filled(rules()[name].title, f"  {name:{width}}  ", head) for name in names]


def _filled(text: str, first: str = "", rest: str = "") -> str:
    return textwrap.fill(
        " ".join(text.split()),
        WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
