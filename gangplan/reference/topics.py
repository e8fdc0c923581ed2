"""The other pages of `gangplan explain`: file formats by their kind, and policy packs."""

from __future__ import annotations

import inspect
from collections.abc import Mapping

from gangplan.packs.model import Pack
from gangplan.packs.own import OwnPolicies
from gangplan.reference.fields import FORMAT_FILES, list_all_format_fields
from gangplan.reference.schemas import list_format_models
from gangplan.reference.words import wrap_paragraph


def list_file_kinds() -> dict[str, str]:
    """Return the kinds of files, as in `kind:`, with the names of their formats."""
    return {model.__name__: name for name, model in list_format_models().items()}


def render_topic_reference(name: str, policies: OwnPolicies) -> str:
    """Return the page of a kind or a pack for a terminal; empty for anything else."""
    by_letters = {kind.lower(): kind for kind in list_file_kinds()}
    if name.lower() in by_letters:
        return render_file_format_reference(by_letters[name.lower()])
    folder, _ = policies.find(name)
    return render_pack_reference(name, folder.pack) if folder else ""


def render_file_format_reference(kind: str) -> str:
    """Return the page of a file format: its purpose, the paths of its files, and its fields."""
    format = list_file_kinds()[kind]
    own = [one for one in list_all_format_fields() if one.kind == format and len(one.path) == 1]
    width = max(len(one.path[0]) for one in own)
    lines = [
        f"{kind} ({FORMAT_FILES[format]})",
        "",
        wrap_paragraph(inspect.getdoc(list_format_models()[format]) or ""),
        "",
        "fields:",
    ]
    for one in own:
        meaning = one.facts["meaning"].replace("`", "").replace("\\|", "|")
        head = f"  {one.path[0]:{width}}  "
        lines.append(wrap_paragraph(meaning, head, " " * len(head)))
    lines += [
        "",
        f"gangplan explain {format}.FIELD shows more; gangplan schema print {format} is for editors.",
    ]
    return "\n".join(lines) + "\n"


def render_pack_reference(name: str, pack: Pack) -> str:
    """Return the page of a pack: its purpose and scope, its policies, and those of other packs that
    it uses."""
    holds = f"what bears gangplan.dev/{pack.label}" if pack.label else "every namespace of a team"
    lines = [
        f"{name} (policy pack)",
        "",
        wrap_paragraph(pack.title),
        "",
        wrap_paragraph(f"Why: {pack.why}"),
        "",
    ]
    lines += [f"Holds for {holds}, on clusters that list it under policies.packs."]
    for what, listed in (("needs", pack.needs), ("uses", pack.uses)):
        lines += [wrap_paragraph(", ".join(listed), f"{what}: ", " " * (len(what) + 2))] if listed else []
    titles = {policy: page.title for policy, page in pack.policies.items()}
    lines += ["", "policies:", *_render_policy_titles(titles)] if titles else []
    return "\n".join(lines) + "\n"


def _render_policy_titles(titles: Mapping[str, str]) -> list[str]:
    width = max(map(len, titles))
    head = " " * (width + 4)
    return [wrap_paragraph(title, f"  {name:{width}}  ", head) for name, title in titles.items()]
