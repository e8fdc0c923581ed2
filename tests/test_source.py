"""Strict YAML: every value as Kubernetes reads it, every mistake a finding at its line and column."""

from __future__ import annotations

import errno
import os
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gangplan.findings import format_sentence
from gangplan.source import (
    Document,
    FileLimits,
    ManifestError,
    load_document,
    load_file,
    load_objects,
    parser,
)

SPEC = """\
# a comment
apiVersion: gangplan.dev/v1
kind: TrainingJob
image: "deepspeed"
command: [python, train.py, --fp16]
workers: 8
data:
  financial-docs: /data
env:
- name: LR
  value: '1e-4'
- name: NOTE
  value: |
    first
    second
memory: 320Gi
"""


def read(text: str | bytes, limits: FileLimits | None = None) -> Document:
    document, findings = load_document(
        text.encode() if isinstance(text, str) else text, "specs/nlp/job.yaml", limits
    )
    assert findings == []
    assert document is not None
    return document


def refused(text: str | bytes, limits: FileLimits | None = None) -> list[str]:
    """Return `rule line:column message` of each finding."""
    document, findings = load_document(
        text.encode() if isinstance(text, str) else text, "specs/nlp/job.yaml", limits
    )
    assert document is None
    assert findings
    for finding in findings:
        assert finding.where.file == "specs/nlp/job.yaml"
        assert finding.help
        assert finding.help == format_sentence(finding.help)
    return [f"{f.rule} {f.where.line}:{f.where.column} {f.message}" for f in findings]


def helped(text: str) -> str:
    return load_document(text.encode(), "job.yaml")[1][0].help


# What sigs.k8s.io/yaml v1.6 reads a plain scalar as, through JSON.
KUBERNETES = {
    "y": True, "Y": True, "n": False, "N": False, "yes": True, "on": True, "true": True, "True": True,
    "No": False, "OFF": False, "off": False, "FALSE": False, "yES": "yES", "tRUE": "tRUE", "oN": "oN",
    "~": None, "null": None, "Null": None, "NULL": None, "": None, "nULL": "nULL", "None": "None",
    "1e3": 1000, "1E3": 1000, "12e3": 12000, "1e6": 1000000, "1.5e3": 1500, "1.5e+3": 1500, "1e-4": 0.0001,
    "1e400": "1e400", "1e20": 1e20, "6.02e23": 6.02e23, "1e": "1e", "e3": "e3", "12E": "12E",
    "08": 8, "0o10": 8, "010": 8, "0777": 511, "00": 0, "-0": 0, "-0.0": 0, "+1": 1, "-1": -1, "0o": "0o",
    "0x1F": 31, "0X1f": 31, "-0x1F": -31, "0b11": 3, "0b12": "0b12", "0x": "0x", "0xG": "0xG",
    "+.5": 0.5, ".5": 0.5, "-.5": -0.5, "1.": 1, "1.0": 1, "0.": 0, "0.5": 0.5, ".5_0": 0.5, ".": ".",
    "._5": "._5", ".5_": ".5_", ".5__0": ".5__0", ".5e1_0": 5000000000, ".5_e1": ".5_e1", ".5e999": ".5e999",
    "1_000": 1000, "1,000": "1,000", "_1": "_1", "1__0_": 10, "+_1": 1, "100m": "100m", "1Gi": "1Gi",
    "1:30": "1:30", "190:20:30": "190:20:30", "2026-01-01": "2026-01-01", "10.0.0.0/8": "10.0.0.0/8",
    "2026-01-01T00:00:00Z": "2026-01-01T00:00:00Z", "=": "=", "<<": "<<", "1.2.3": "1.2.3", "--": "--",
    "9223372036854775807": 9223372036854775807, "9223372036854775808": 9223372036854775808,
    "-9223372036854775809": -9.223372036854775808e18, "0xFFFFFFFFFFFFFFFF": 18446744073709551615,
    "123456789012345678901234567890": 1.2345678901234568e29, "1234567890123456789.0": 1234567890123456800,
    "!!str 5": "5", '!!int "5"': 5, "!!float 5": 5, '!!bool "y"': True, "!!null ''": None, "!!str": "",
    '"y"': "y", "'1e3'": "1e3", "|-\n  08": "08", '"\\x41\\u00e9\\U0001F600"': "A\u00e9\U0001f600",
}  # fmt: skip


@pytest.mark.parametrize(("scalar", "value"), KUBERNETES.items())
def test_scalars_are_read_as_kubernetes_reads_them(scalar: str, value: object) -> None:
    for got in (read(f"v: {scalar}\n").value["v"], load_objects(f"v: {scalar}\n")[0]["v"]):
        assert (type(got), got) == (type(value), value)


@pytest.mark.parametrize("scalar", [".inf", "-.inf", "+.Inf", ".NaN", ".nan", ".NAN", "!!float .inf"])
def test_numbers_that_json_cannot_carry_are_refused(scalar: str) -> None:
    assert refused(f"v: {scalar}\n")[0].startswith("yaml-bad-number 1:4 ")
    with pytest.raises(ManifestError, match="line 1"):
        load_objects(f"v: {scalar}\n")


def test_keys_and_values_have_positions() -> None:
    document = read(SPEC)
    assert str(document.where(("workers",))) == "specs/nlp/job.yaml:6:10"
    assert str(document.where(("workers",), key=True)) == "specs/nlp/job.yaml:6:1"
    assert str(document.where(("command", 2))) == "specs/nlp/job.yaml:5:29"
    assert str(document.where(("command", 2), key=True)) == "specs/nlp/job.yaml:5:29"
    assert str(document.where(("env", 1, "value"), key=True)) == "specs/nlp/job.yaml:13:3"
    assert str(document.where(())) == "specs/nlp/job.yaml:2:1"


def test_an_absent_path_has_the_place_of_its_nearest_ancestor() -> None:
    document = read(SPEC)
    assert document.where(("data", "none", 3)) == document.where(("data",))
    assert document.where(("data", "none"), key=True) == document.where(("data",), key=True)
    assert document.where(("env", 9)) == document.where(("env",))
    assert document.where(("env", "name")) == document.where(("env",))
    assert document.where(("command", -1)) == document.where(("command",))
    assert document.where(("none",)) == document.where(())


def test_text_is_the_scalar_as_written() -> None:
    document = read("cpu: 0.50\nport: 0x1F\nname: 'a''b'\nlist: [y]\nblock: |\n  x\nnothing:\n")
    assert document.value == {
        "cpu": 0.5,
        "port": 31,
        "name": "a'b",
        "list": [True],
        "block": "x\n",
        "nothing": None,
    }
    written = {name: document.text((name,)) for name in document.value}
    assert written == {
        "cpu": "0.50",
        "port": "0x1F",
        "name": "a'b",
        "list": None,
        "block": "x\n",
        "nothing": "",
    }
    assert document.text(("list", 0)) == "y"
    assert document.text(("absent",)) is None
    quoted = [name for name in document.value if document.is_quoted((name,))]
    assert quoted == ["name", "block"]
    assert not document.is_quoted(("name", "absent"))


def test_an_alias_yields_its_own_value_at_the_place_of_its_anchor() -> None:
    document = read("a: &x {k: 1}\nb: *x\n")
    document.value["a"]["k"] = 2
    assert document.value["b"] == {"k": 1}
    assert str(document.where(("b", "k"))).endswith(":1:11")


def test_documents_can_be_pickled() -> None:
    document = read(SPEC)
    document.where(("workers",))
    copy = pickle.loads(pickle.dumps(document))
    assert (copy.file, copy.value) == (document.file, document.value)
    assert copy.where(("workers",)) == document.where(("workers",))


def test_line_ends_and_byte_order_mark_change_nothing() -> None:
    plain = read(SPEC)
    windows = read(b"\xef\xbb\xbf" + SPEC.replace("\n", "\r\n").encode())
    assert windows.value == plain.value
    assert windows.where(("memory",)) == plain.where(("memory",))
    assert read("\ufeffname: x").where(("name",), key=True).column == 1


# By text: "line:column", a part of the message, a part of the help.
SYNTAX = {
    "a:\n\tb: 1": ("2:1", "a tab indents this line", "replace the tab with spaces"),
    "a: b\n \tc: 1": ("2:2", "a tab indents this line", "replace the tab with spaces"),
    "-\ta: 1\n": ("1:2", "a tab indents", "spaces"),
    "a: 'x\nb: 1\n": ("1:4", "the quote ' that opens here is never closed", "close it"),
    'a: "x\nb: 1\n': ("1:4", 'the quote " that opens here is never closed', "close it"),
    "note: first: second": ("1:12", "a second ': '", "quote the value: 'first: second'"),
    "a: it's: x": ("1:8", "a second ': '", '''quote the value: "it's: x"'''),
    "workers 8\ngpus: 4": ("1:1", "'workers 8' has no ': ' after its key", "write workers: 8"),
    "a: 1\nworkers 8\ngpus: 4": ("2:1", "'workers 8' has no ': ' after its key", "write workers: 8"),
    "a: 1\nworkers 8": ("2:1", "'workers 8' has no ': ' after its key", "write workers: 8"),
    "image:deepspeed\nworkers: 8": ("1:1", "a space is missing after 'image:'", "write image: deepspeed"),
    "a: 1\n  b: 2": ("2:3", "indented deeper than line 1", "align it with line 1"),
    "a:\n- b\n c: d": ("3:2", "indented deeper than line 2", "align it with line 2"),
    "a:\n  b: 1\n c: 2": ("3:2", "indented by 1 space, which", "align it with line 1, or with line 2"),
    "- - a\n - b": ("2:2", "matches no line above", "align it with line 1"),
    "  a: 1\nb: 2": ("2:1", "indented less than the first one (2 spaces)", "first column"),
    "command: [python, train.py\nworkers: 4": ("1:10", "the '[' that opens here is not closed", "']'"),
    "data: {a: /x\nworkers: 4": ("1:7", "the '{' that opens here is not closed", "'}'"),
    "a: [1,2:]": ("1:7", "':' inside brackets", "quote it: '2:"),
    "a: {b: c: d}": ("1:9", "expected ',' or '}' before ': d}'", "quote the text"),
    "a: ['x' 'y']": ("1:9", "expected ',' or ']' before", "separate the entries"),
    "a: [x, , y]": ("1:8", "a value is missing before ','", "write it"),
    "a: ,": ("1:4", "a value is missing before ','", "quote ','"),
    "a: [1, 2]]": ("1:10", "']' does not belong", "remove it"),
    "a: 1\n}": ("2:1", "'}' is not 'key: value'", "remove it"),
    "a: *.py": ("1:4", "'*' begins an alias", "quote it: '*.py'"),
    "a: *foo # x": ("1:4", "'*' begins an alias", "quote it: '*foo'"),
    "a: & b": ("1:4", "'&' begins an anchor", "quote it: '& b'"),
    "a: &x 1\nb: &x 2": ("2:4", "defined twice; first at line 1", "rename"),
    "a: !e!foo bar": ("1:4", "'!' begins a tag", "quote it"),
    "when: @daily": ("1:7", "a value cannot begin with '@'", "quote it: '@daily'"),
    "a: `date`": ("1:4", "cannot begin with '`'", "quote it: '`date`'"),
    "a: %d": ("1:4", "cannot begin with '%'", "quote it: '%d'"),
    "%d: 1": ("1:1", "'%' begins a YAML directive", "quote it"),
    "%YAML 2.0\n---\na: 1": ("1:1", "'%' begins a YAML directive", "quote it"),
    "a: - b": ("1:4", "a list cannot begin on the line of its key", "below the key"),
    "a: ? b": ("1:4", "'?' begins a complex key", "quote it: '? b'"),
    "a: [python, --lr=${{ parameters.lr }}]": ("1:19", "the '{' of a placeholder", "quote the whole text"),
    "a: {% if x %}": ("1:4", "specs are not templates", "quote"),
    'a: "C:\\path"': ("1:7", "'\\p' is not an escape", "single quotes"),
    'a: "\\ud83d"': ("1:7", "this escape does not name a character", "write the character itself"),
    'a: "x" y': ("1:8", "text follows the closing quote", "one pair of quotes"),
    "a: 'it's'": ("1:8", "text follows the closing quote", "one pair of quotes"),
    "a: | x": ("1:6", "text follows '|' on its line", "begin the text on the next line"),
    "- a\nb: 1": ("2:1", "the list that begins at line 1 goes on", "begin the line with '- '"),
    "a: 1\n- b": ("2:1", "there is a list entry where a key is expected", "a key of its own"),
    "a: 1\n...\nb: 2": ("3:1", "the document has ended", "remove '...'"),
    "'a' 'b'": ("1:5", "does not belong to the text before", "key: value"),
    "a:\u00a0b\nc: d": ("1:3", "invisible space (U+00A0)", "ordinary space"),
    ": : x": ("1:1", "': : x' is not 'key: value'", "quote it"),
}  # fmt: skip


@pytest.mark.parametrize("text", SYNTAX)
def test_syntax_errors_are_worded_for_their_writer(text: str) -> None:
    place, message, help = SYNTAX[text]
    [line] = refused(text)
    assert line.startswith(f"yaml-syntax {place} ")
    assert message in line
    assert help.lower() in helped(text).lower()


@pytest.mark.parametrize("text", [text for text in SYNTAX if "\\" not in text and "2:]" not in text])
def test_the_parser_without_the_c_extension_reports_the_same(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = refused(text)
    monkeypatch.setattr(parser, "_FAST", parser._PureWatched)
    assert refused(text) == expected


@pytest.mark.parametrize(("scalar", "value"), KUBERNETES.items())
def test_the_parser_without_the_c_extension_reads_the_same(
    scalar: str, value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parser, "_FAST", parser._PureWatched)
    assert read(f"v: {scalar}\n").value == {"v": value}


def test_every_duplicate_key_is_reported_with_both_lines() -> None:
    assert refused("a: 1\nb: {c: 1, c: 2}\na: 2\n'a': 3\n") == [
        "yaml-duplicate-key 2:11 'c' is set twice; first at line 2",
        "yaml-duplicate-key 3:1 'a' is set twice; first at line 1",
        "yaml-duplicate-key 4:1 'a' is set twice; first at line 1",
    ]


def test_keys_must_be_text() -> None:
    assert refused("on: push\n1: a\n~: b\n.inf: c\n[a]: d\n") == [
        "yaml-key-type 1:1 the key 'on' is read as the boolean true",
        "yaml-key-type 2:1 the key '1' is read as a number",
        "yaml-key-type 3:1 the key '~' is read as nothing",
        "yaml-key-type 4:1 the key '.inf' is read as a number",
        "yaml-key-type 5:1 a key must be a word, not a mapping or a list",
    ]
    assert helped("y: 1\n") == 'Quote it: "y".'
    assert "{{ name }}" in helped("image: {{ image }}\n")
    assert read("'on': 1\n\"1\": 2\n!!str 2: 3\n'<<': 4\n").value == {"on": 1, "1": 2, "2": 3, "<<": 4}


def test_tags_merge_keys_and_more_documents_are_refused() -> None:
    assert refused("a: !!python/object:os.system x\nb: !secret y\nc: !!int z\nd: ! 5\n!x e: 1\n") == [
        "yaml-tag 1:4 the tag !!python/object:os.system is not supported",
        "yaml-tag 2:4 the tag !secret is not supported",
        "yaml-tag 3:4 'z' does not fit its tag !!int",
        "yaml-tag 4:4 the tag ! is not supported",
        "yaml-tag 5:1 the tag !x is not supported",
    ]
    assert refused("a: !!set {b}\n")[0].startswith("yaml-tag 1:4 ")
    assert read("a: !!map {b: !!seq [c]}\n").value == {"a": {"b": ["c"]}}
    assert refused("<<: {a: 1}\n") == ["yaml-merge-key 1:1 the merge key '<<' is not supported"]
    assert refused("a: 1\n---\nb: 2\n")[0].startswith("yaml-many-documents 2:1 ")
    assert helped("a: 1\n---\nb: 2\n") == "Give it a file of its own."
    assert helped("a: 1\n---\n# the end\n") == "Remove the '---'."


@pytest.mark.parametrize("text", ["", "\n \n", "# nothing yet\n", "---\n", "~", "null\n"])
def test_an_empty_file_is_not_a_document(text: str) -> None:
    assert refused(text)[0].startswith("yaml-empty 1:1 ")


def test_bytes_that_are_not_text_are_refused() -> None:
    assert refused(b"a: 1\nb: caf\xe9\n") == ["yaml-not-utf8 2:7 byte 0xe9 at offset 11 is not UTF-8"]
    assert refused("a: 1\n".encode("utf-16")) == ["yaml-not-utf8 1:1 the file is UTF-16, not UTF-8"]
    for code in (0x00, 0x07, 0x1B, 0x7F, 0x85, 0x2028, 0xFEFF, 0xFFFE):
        expected = f"yaml-control-character 2:4 the invisible character U+{code:04X} is not allowed in YAML"
        assert refused(f"a: 1\nb: {chr(code)}\n") == [expected]


def test_size_depth_and_expansion_are_limited() -> None:
    bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(9)
    )
    assert refused(bomb)[0].startswith("yaml-alias-bomb ")
    assert refused("a: &a {b: [1, *a]}\n")[0].startswith("yaml-alias-bomb ")
    assert refused("a: &a [[1], *a]\n")[0].startswith("yaml-alias-bomb ")
    assert read("[" * 32 + "]" * 32).value
    assert refused("[" * 33 + "]" * 33)[0] == "yaml-too-deep 1:33 values are nested more than 32 deep"
    assert refused("a: 1\n", FileLimits(max_bytes=4))[0].startswith(
        "yaml-too-large 0:0 the file has more than 4"
    )
    assert refused("- a\n" * 11, FileLimits(max_entries=10))[0].startswith("yaml-too-large 1:1 ")
    assert read("- a\n" * 10, FileLimits(max_entries=10)).value == ["a"] * 10


@pytest.mark.parametrize("unit", ["[", "{a: ", "- ", "? ", "[{"])
def test_nesting_never_exhausts_the_stack(unit: str) -> None:
    for times in (400, 3_000, 100_000):
        assert refused(unit * times)[0].split()[0] in ("yaml-too-deep", "yaml-syntax", "yaml-key-type")
        with pytest.raises(ManifestError):
            load_objects(unit * times)


@given(st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_load_never_raises(data: bytes) -> None:
    document, findings = load_document(data, "x.yaml")
    assert (document is None) == bool(findings)


@given(st.text(alphabet="ab01ye.~_-+ \n:,[]{}&*!|>'\"%@`#?<=\\\t\r", max_size=40))
@example("! {a: ! [b]}")
@example("a: ! 5")
def test_near_yaml_is_read_or_refused_by_both_readers_alike(text: str) -> None:
    document, findings = load_document(text.encode(), "x.yaml")
    for finding in findings:
        assert finding.where.line >= 1
        assert finding.where.column >= 1
        assert finding.help
    if document is not None and isinstance(document.value, dict):
        assert load_objects(text) == [document.value]
        for path in (("a",), ("a", 0), (0,)):
            document.where(path)


def test_load_objects_reads_a_stream() -> None:
    text = "# header\n---\nkind: A\n---\n# nothing\n---\nkind: B\nports: {80: web, y: 1}\nempty: {}\nnone:\n"
    objects: list[dict[str, Any]] = [
        {"kind": "A"},
        {"kind": "B", "ports": {"80": "web", "true": 1}, "empty": {}, "none": None},
    ]
    assert load_objects(text) == objects
    assert load_objects(text.encode()) == objects
    assert load_objects("") == []
    assert load_objects("a: &x [1]\nb: *x\n") == [{"a": [1], "b": [1]}]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a: 1\n---\n- b\n", 3, "not a mapping"),
        ("a: 1\nb: 2\na: 3\n", 3, "'a' is set twice"),
        ("a: [1\nb: 2\n", 2, "expected ',' or ']'"),
        ("a: 1\n<<: {}\n", 2, "'<<' is not text"),
        ("a:\n  [x]: 1\n", 2, "is not text"),
        ("a:\n  .5: 1\n", 2, "is not text"),
        ("a: !secret x\n", 1, "'x' is not a !secret"),
        ("a: &a [*a]\n", 0, "contains itself"),
        (b"a: \xff\n", 0, "decode"),
    ],
)  # fmt: skip
def test_load_objects_refuses_invalid_streams(text: str | bytes, line: int, message: str) -> None:
    with pytest.raises(ManifestError) as caught:
        load_objects(text)
    assert caught.value.line == line
    assert message in caught.value.message


def test_load_objects_refuses_alias_bombs() -> None:
    rows = [f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(9)]
    with pytest.raises(ManifestError, match="repeat"):
        load_objects("a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(rows))


def test_a_file_is_read_also_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(SPEC)
    (tmp_path / "link.yaml").symlink_to("job.yaml")
    for name in ("job.yaml", "link.yaml"):
        document, findings = load_file(tmp_path / name, "specs/nlp/job.yaml")
        assert findings == []
        assert document is not None
        assert document.value == read(SPEC).value
    _, [finding] = load_file(tmp_path / "job.yaml", "job.yaml", FileLimits(max_bytes=10))
    assert finding.rule == "yaml-too-large"


def unreadable(path: Path) -> str:
    document, [finding] = load_file(path, "specs/nlp/job.yaml")
    assert document is None
    assert (finding.rule, str(finding.where)) == ("file-unreadable", "specs/nlp/job.yaml")
    assert finding.help
    return finding.message


def test_files_that_cannot_be_read_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("a: 1\n")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "dangling").symlink_to("nowhere")
    assert "directory, not a file" in unreadable(tmp_path)
    assert "does not exist" in unreadable(tmp_path / "absent")
    assert "points to a file that does not exist" in unreadable(tmp_path / "dangling")
    assert "points back to itself" in unreadable(tmp_path / "loop")
    assert "not a directory" in unreadable(tmp_path / "file" / "x")
    assert "too long" in unreadable(tmp_path / ("x" * 5000))
    assert "NUL" in unreadable(tmp_path / "a\0b")
    for code, message in (
        (errno.EACCES, "permission to read the file is denied"),
        (errno.EIO, "cannot be read"),
    ):
        denied = OSError(code, os.strerror(code))

        def deny(*_: object, denied: OSError = denied) -> int:
            raise denied

        monkeypatch.setattr(os, "open", deny)
        assert message in unreadable(tmp_path / "file")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes in this file system")
def test_pipes_and_devices_are_never_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "not a regular file" in unreadable(tmp_path / "pipe")
    assert "not a regular file" in unreadable(Path(os.devnull))
