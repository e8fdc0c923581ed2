"""Every rule that a finding can name: the one source of `gangplan explain` and of docs/rules.md.

The rules stand in the YAML files beside this module, one mapping from id to page per file; the first lines of
core.yaml tell how to add one. tests/rules/ holds the files against the code and runs every example. The pages
of policies stand in the pack.yaml of their packs: those that come with gangplan are in docs/policies.md,
those of the workspace's own packs are known from `learn` on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from gangplan import policies
from gangplan.errors import InternalError
from gangplan.source import ManifestError, load_objects

SEVERITIES = ("error", "warning", "note")
# What a breach of a policy is told as, by its validationActions.
ACTIONS = {"Deny": "error", "Warn": "warning", "Audit": "note"}
# The packs, and how the topic of a policy's page begins.
PACKS = Path(str(policies.__file__)).parent
POLICIES = "policies of "
HEADERS = {
    "patch": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n",
}


@dataclass(frozen=True, slots=True)
class Example:
    """A small workspace made wrong, and made right again.

    In the file `place`, the text `old` becomes `before` or `after` (without `old` they are put at the end,
    with `whole` they are the file; None leaves the file out). `place` "patch" is the list of patches of the
    cluster's overlay. The rest is the same on both sides: `base` names the workspace, `changes` are
    further (file, old, new), `files` further files, `run` the command, `rest` the other rules that the
    mistake breaks.
    """

    place: str
    before: str | None
    after: str | None
    old: str = ""
    whole: bool = False
    base: str = "small"
    run: str = "validate"
    changes: tuple[tuple[str, str, str], ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    rest: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: how bad a breach is, what is wrong in a line, why it matters, what to do.

    `waivable`: whether a waiver may excuse a breach; None is yes for a policy and no for a built-in rule,
    because most of these tell of runs that would not work.
    """

    id: str
    topic: str
    severity: str
    title: str
    why: str
    fix: str
    example: Example | None = None
    untested: str = ""
    waivable: bool | None = None
    told_by: tuple[str, ...] = ()  # of a policy: built-in rules that tell the same cause
    is_own: bool = False  # a policy of a pack of the workspace


# All rules of a workspace with packs of its own, as it was read last; empty for one without.
_current: dict[str, Rule] = {}


def rules() -> Mapping[str, Rule]:
    """All rules by id: the built-in ones in the order of their files, then the policies by pack, those of the
    workspace's own packs last. Raises InternalError for a file that is no registry."""
    return _current or shipped()


@cache
def shipped() -> dict[str, Rule]:
    """The rules that come with gangplan: built-in ones and policies."""
    found = dict(built_in())
    for pack in policies.PACKS:
        (written,) = load_objects((PACKS / pack / "pack.yaml").read_text(encoding="utf-8"))
        for name, page in written["policies"].items():
            if name in found:
                raise InternalError(f"policy {name} of pack {pack} has the name of another rule")
            found[name] = _policy(name, pack, page)
    return found


def learn(root: Path) -> None:
    """From now on `rules` knows the policies of the workspace's own packs, too.

    A page that cannot be read, or that has the name of another rule, is left out: packs/checks.py tells it.
    """
    _current.clear()
    own: dict[str, Rule] = {}
    for file in sorted((root / "policies").glob("*/pack.yaml")):
        if file.parent.name not in policies.PACKS:
            for name, page in _pages(file).items():
                own.setdefault(name, _policy(name, file.parent.name, page, is_own=True))
    if own:
        _current.update({**shipped(), **{name: own[name] for name in own if name not in shipped()}})


def _pages(file: Path) -> dict[str, dict[str, Any]]:
    """The policies of a pack.yaml that have a page."""
    try:
        (pack,) = load_objects(file.read_bytes())
    except (OSError, ManifestError, ValueError):
        return {}
    found = pack.get("policies")
    texts = ("title", "why", "fix")
    return {
        name: page
        for name, page in (found if isinstance(found, dict) else {}).items()
        if isinstance(page, dict)
        and all(isinstance(page.get(text), str) for text in texts)
        and page.get("action", "Deny") in ACTIONS
        and isinstance(page.get("told_by", []), list)
    }


@cache
def built_in() -> dict[str, Rule]:
    """The rules that gangplan itself tells of, in the order of their files."""
    found: dict[str, Rule] = {}
    for file in sorted(
        Path(__file__).parent.glob("*.yaml"), key=lambda path: (path.stem != "core", path.stem)
    ):
        (pages,) = load_objects(file.read_text(encoding="utf-8"))
        for name, page in pages.items():
            if name in found:
                raise InternalError(f"rule {name} is in {found[name].topic}.yaml and in {file.name}")
            found[name] = _rule(name, file.stem, page)
    return found


def _policy(name: str, pack: str, page: dict[str, Any], is_own: bool = False) -> Rule:
    """The page of a policy; its examples are the case files beside it."""
    severity = ACTIONS[page.get("action", "Deny")]
    cases = f"policies/{pack}/tests/{name}.*.yaml are its examples; `gangplan policy test` runs them."
    return Rule(
        id=name,
        topic=f"{POLICIES}{pack}",
        severity=severity,
        title=page["title"],
        why=page["why"],
        fix=page["fix"],
        untested=cases,
        waivable=page.get("waivable", True),
        told_by=tuple(page.get("told_by", ())),
        is_own=is_own,
    )


def _rule(name: str, topic: str, page: dict[str, Any]) -> Rule:
    shown = dict(page)
    example = shown.pop("example", None)
    try:
        return Rule(name, topic, **shown, example=_example(example) if example else None)
    except TypeError as wrong:
        raise InternalError(f"rule {name} in {topic}.yaml: {wrong}") from None


def _example(written: dict[str, Any]) -> Example:
    values = {
        "place" if key == "in" else "changes" if key == "with" else key: written[key] for key in written
    }
    values["changes"] = tuple((file, old, new) for file, old, new in values.get("changes", ()))
    values["rest"] = tuple(values.get("rest", ()))
    return Example(**values)
