"""The other pages of `gangplan explain`: file formats by their kind, and policy packs."""

from __future__ import annotations

import inspect
from collections.abc import Mapping

from gangplan.packs.model import Pack
from gangplan.packs.own import OwnPolicies
from gangplan.reference.fields import FILES, all_fields
from gangplan.reference.schemas import models
from gangplan.reference.words import filled


def kinds() -> dict[str, str]:
    """Return the kinds of files, as in `kind:`, with the names of their formats."""
    return {model.__name__: name for name, model in models().items()}


def topic_text(name: str, policies: OwnPolicies) -> str:
    """Return the page of a kind or a pack for a terminal; empty for anything else."""
    by_letters = {kind.lower(): kind for kind in kinds()}
    if name.lower() in by_letters:
        return kind_text(by_letters[name.lower()])
    folder, _ = policies.find(name)
    return pack_text(name, folder.pack) if folder else ""


def kind_text(kind: str) -> str:
    """Return the page of a file format: its purpose, the paths of its files, and its fields."""
    format = kinds()[kind]
    own = [one for one in all_fields() if one.kind == format and len(one.path) == 1]
    width = max(len(one.path[0]) for one in own)
    lines = [f"{kind} ({FILES[format]})", "", filled(inspect.getdoc(models()[format]) or ""), "", "fields:"]
    for one in own:
        meaning = one.facts["meaning"].replace("`", "").replace("\\|", "|")
        head = f"  {one.path[0]:{width}}  "
        lines.append(filled(meaning, head, " " * len(head)))
    lines += [
        "",
        f"gangplan explain {format}.FIELD shows more; gangplan schema print {format} is for editors.",
    ]
    return "\n".join(lines) + "\n"


def pack_text(name: str, pack: Pack) -> str:
    """Return the page of a pack: its purpose and scope, its policies, and those of other packs that
    it uses."""
    holds = f"what bears gangplan.dev/{pack.label}" if pack.label else "every namespace of a team"
    lines = [f"{name} (policy pack)", "", filled(pack.title), "", filled(f"Why: {pack.why}"), ""]
    lines += [f"Holds for {holds}, on clusters that list it under policies.packs."]
    for what, listed in (("needs", pack.needs), ("uses", pack.uses)):
        lines += [filled(", ".join(listed), f"{what}: ", " " * (len(what) + 2))] if listed else []
    titles = {policy: page.title for policy, page in pack.policies.items()}
    lines += ["", "policies:", *_policies(titles)] if titles else []
    return "\n".join(lines) + "\n"


def _policies(titles: Mapping[str, str]) -> list[str]:
    width = max(map(len, titles))
    head = " " * (width + 4)
    return [filled(title, f"  {name:{width}}  ", head) for name, title in titles.items()]
