"""The position of a character of a text is found in the file, in every style of YAML scalars."""

from __future__ import annotations

import pytest

from gangplan.source import load_all_documents, load_document

TEXT = """\
literal: |
  first && second
    third
folded: >-
  one two
  three

  four
plain: a == b
single: 'it''s here'
double: "x == \\"y\\" && z"
long: a
  b  c
"""


@pytest.mark.parametrize("key", ["literal", "folded", "plain", "single", "double", "long"])
def test_every_character_has_its_position(key: str) -> None:
    document, findings = load_document(TEXT.encode(), "f.yaml")
    assert document is not None, findings
    lines = TEXT.split("\n")
    for offset, character in enumerate(document.value[key]):
        where = document.inside((key,), offset)
        found = lines[where.line - 1][where.column - 1 : where.column]
        # A line break of the value is at an end of line; a quote may follow its backslash.
        assert (
            found == character
            or (character.isspace() and found == "")
            or (found == "\\" and character == '"')
        )


def test_several_documents_keep_their_lines() -> None:
    text = "a: 1\n---\n# nothing\n---\nb: |\n  ---\n  x\n---\nc: [\n"
    documents, findings = load_all_documents(text.encode(), "f.yaml")
    assert findings
    assert not documents
    documents, findings = load_all_documents(text.replace("[", "2").encode(), "f.yaml")
    assert not findings
    assert [(one.value, one.where(()).line) for one in documents] == [
        ({"a": 1}, 1),
        ({"b": "---\nx\n"}, 5),
        ({"c": 2}, 9),
    ]


def test_a_duplicate_key_in_a_later_document_is_reported() -> None:
    documents, findings = load_all_documents(b"a: 1\n---\nb: 1\nb: 2\n", "f.yaml")
    assert len(documents) == 1
    assert [(one.rule, one.where.line) for one in findings] == [("yaml-duplicate-key", 4)]
