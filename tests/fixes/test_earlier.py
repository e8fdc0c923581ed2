"""A digest that is replaced moves to `earlier`, however the catalog is written."""

from __future__ import annotations

import pytest

from gangplan.fixes.earlier import MOST, build_earlier_digest_fix
from gangplan.fixes.edits import apply_fixes
from gangplan.source import load_document

OLD, OLDER, ZEROS = (f"sha256:{digit * 64}" for digit in "120")
HEAD = "images:\n  torch:\n    repository: registry.example.com/t\n"
OWN, NEW = f"    digest: {OLD}\n", f"    earlier: [{OLD}]\n"
OWN_LIST, NEW_LIST = f"    earlier:\n    - {OLDER}\n", f"    earlier:\n    - {OLD}\n    - {OLDER}\n"
TAG = "    tag: a\n"
# The catalog's entry before and after.
CASES = {
    "a block": (f"    digest: {OLD} # May\n{TAG}", f"    digest: {OLD} # May\n{NEW}{TAG}"),
    "the last line": (OWN, f"{NEW}{OWN}"),
    "a flow list": (f"{OWN}    earlier: [{OLDER}]\n", f"{OWN}    earlier: [{OLD}, {OLDER}]\n"),
    "a block list": (f"{OWN_LIST}{OWN}", f"{NEW_LIST}{OWN}"),
    "quoted entries": (
        f"{OWN_LIST}{OWN}".replace(OLDER, f'"{OLDER}"'),
        f"{NEW_LIST}{OWN}".replace(OLDER, f'"{OLDER}"'),
    ),
    "an empty list": (f"    earlier: []\n{OWN}", f"{NEW}{OWN}"),
    "there already": (f"{OWN}{NEW}", f"{OWN}{NEW}"),
    "lines of Windows": (f"{OWN}{TAG}".replace("\n", "\r\n"), f"{OWN}{NEW}{TAG}".replace("\n", "\r\n")),
}


def kept(text: str, *digests: str) -> str:
    document, _ = load_document(text.encode(), "images/catalog.yaml")
    assert document is not None
    fix = build_earlier_digest_fix(document, text, "torch", digests)
    return apply_fixes(text, [fix] if fix else [])


@pytest.mark.parametrize("name", CASES)
def test_a_replaced_digest_is_added_to_earlier(name: str) -> None:
    before, after = CASES[name]
    head = HEAD.replace("\n", "\r\n") if "\r" in before else HEAD
    assert kept(head + before, OLD) == head + after


def test_earlier_is_added_in_flow_style_but_not_for_zeros_or_full_lists() -> None:
    text = f"images: {{torch: {{repository: a.example.com/t, digest: {OLD}}}}}\n"
    assert kept(text, OLD, OLD) == text.replace("digest:", f"earlier: [{OLD}], digest:")
    assert kept(text, ZEROS) == kept(text) == text
    many = ", ".join(f"sha256:{number:064x}" for number in range(1, MOST + 1))
    full = f"{HEAD}    earlier: [{many}]\n    digest: {OLDER}\n"
    assert kept(full, OLDER) == full
