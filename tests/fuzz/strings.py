"""A text full of special characters stays a text in each field that takes text."""

from __future__ import annotations

import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

from tests import kubelet, workspaces
from tests.fuzz import documents
from tests.fuzz.base import Stories

TOKEN = "zq7x"
NASTY = (
    *("\n", "\r\n", "\n---\nkind: Secret\n", '"', "'", '"\n', "\\", "\\n", "\t", "\0", "\x1b[31m", "\x7f", "\x85", "\u2028"),
    *("{{ 7 * 7 }}", "{% raw %}", "{# x #}", "$(x)", "$(HOME)", "$$(x)", "${x}", "`id`", "$", ": ", " #", "- a", "&a", "*a"),
    *("!!python/object:os.system", "|", ">", "%", "@", "\u202e", "\u200b", "\ufeff", "e\u0301", "🚀", "\ud7ff", "\uffff", "~"),
    *("gp0x1x0gp", "00000000", "null", "yes", "0x1F", "1e3", ",", "]", "}", "/../", "::error::x", "<b>", "=", " " * 200),
)  # fmt: skip


def story(chance: random.Random, folder: Path) -> None:
    """Compare two workspaces that differ in one text: a harmless one, and one with something nasty in it."""
    world = {kind: documents.grown(kind, chance, chance.choice((0, 0, 0, 1))) for kind in documents.FILES}
    kind = chance.choice(["spec", "spec", "spec", *world])
    world["spec"] |= {"description": "a text", "env": {"ONE": "a text", "TWO": "x"}}
    places = list(documents.leaves(world[kind]))
    at = chance.choice(places)
    is_key = isinstance(at[-1], str) and len(at) > 1 and chance.random() < 0.2
    write = documents.renamed if is_key else documents.put
    nasty = "".join(chance.choices(NASTY, k=chance.choice((1, 1, 2, 4))))
    if chance.random() < 0.02:
        nasty = "x" * 1_000_000
    text = chance.choice((f"{TOKEN}{nasty}{TOKEN}", f"{TOKEN}{nasty}", f"{nasty}{TOKEN}"))
    where = f"{kind} {at}{' (key)' if is_key else ''}: {text[:200]!r}"
    outcomes = []
    for number, one in enumerate((TOKEN, text)):
        root = documents.save(folder / str(number), {**world, kind: write(world[kind], at, one)})
        outcome = workspaces.gangplan("render", "-C", root, "--no-cache", "--engine", "serial")
        told = outcome.out + outcome.err
        assert "bug in gangplan" not in told, f"{where}: {told[:3000]}"
        assert outcome.code in (0, 1, 2), f"{where}: {told[:3000]}"
        assert not re.search("[\0\x1b\x7f\x85\u2028\u202e\u200b\ufeff]", told), f"{where}: {told[:500]!r}"
        assert not re.search(r"^::error", told, re.MULTILINE), f"{where}: {told[:500]!r}"
        outcomes.append((outcome.code, workspaces.rendered(root)))
    (plain_code, plain), (code, nastily) = outcomes
    if code == 0:
        _still_text(nastily, text, where)
        if plain_code == 0:
            assert _shapes(nastily) == _shapes(plain), f"{where}: other objects than with a harmless text"


def _still_text(files: dict[str, bytes], text: str, where: str) -> None:
    """Check that the text is whole wherever it went."""
    for name, data in files.items():
        assert not re.search(r"[^-a-z0-9./]", name), f"{where}: {name!r}"
        for body in yaml.load_all(data, yaml.CSafeLoader):
            for one in _texts(body):
                if TOKEN in one and text not in one and text not in kubelet.expand_like_kubelet(one):
                    # A script quotes it for its shell, and a plan fills in {ranks}.
                    assert _quoted(text) in one or _quoted(text) in kubelet.expand_like_kubelet(one), (
                        f"{where}: became {one[:300]!r}"
                    )


def _quoted(text: str) -> str:
    """Escape a text for the inside of single quotes in a shell."""
    return text.replace("'", "'\"'\"'")


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for key, item in value.items() for text in (*_texts(key), *_texts(item))]
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    return [value] if isinstance(value, str) else []


def _shapes(files: dict[str, bytes]) -> Counter[str]:
    """Count the objects by structure; keys with the token count as one key."""
    bodies = [body for data in files.values() for body in yaml.load_all(data, yaml.CSafeLoader)]
    return Counter(f"{body['kind']} {_shape(body)!r}" for body in bodies if body)


def _shape(value: Any) -> Any:
    if isinstance(value, dict):
        return sorted(("KEY" if TOKEN in key else key, str(_shape(item))) for key, item in value.items())
    if isinstance(value, list):
        return [_shape(item) for item in value]
    return type(value).__name__


STRINGS = Stories(story)
