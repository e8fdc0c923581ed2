"""Canonical YAML: every reader reads back what was written, and equal objects are equal texts."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from gangplan import objects
from gangplan.objects import (
    Body,
    Ref,
    dump_all,
    dump_object_as_block_yaml,
    format_scalar,
    ref_of,
    walk_leaves,
)
from gangplan.source import load_objects
from tests import plain

# Strings that some readers misread when they are written without care.
NASTY = [
    "", " ", "  two", "trailing ", "\t", "a\tb", "\n", "\n\n", "a\n", "a\n\n", "\na", " a\nb", "a\n b\n",
    "a \nb", "a\n\tb", "\ta\nb", "a\n\nb\n", "a\r\nb", "a\rb", "#", "# x", "a #b", "a#b", "a\n# b\n", "---",
    "...", "--- a", "a\n---\nb\n", "y", "Y", "n", "N", "yes", "No", "on", "OFF", "true", "False", "TRUE",
    "null", "Null", "~", "None", "nan", ".nan", ".inf", "-.inf", "inf", "Infinity", "0", "-0", "00", "1",
    "+1", "-1", "1.", "1.0", ".5", "+.5", "1e3", "1E3", "1e-4", "12e3", "1e+3", "6.02e23", "08", "010",
    "0o10", "0x1F", "0b11", "1_000", "1,000", "1:30", "190:20:30", "2026-01-01", "2026-01-01T00:00:00Z",
    "=", "<<", "3f2a1b4c", "12e45678", "1234567e", "!x", "!!str 5", "&a", "*a", "*.py", "%d", "@daily",
    "`date`", "|", ">", "|-", "? a", "?a", "- a", "-a", "-", "--", "--fp16", "--lr=1e-4", ": a", "a: b",
    "a:", "a:b", ":a", "a::b", "[a]", "{a}", "a]", "a}", "a,b", ",", "'", '"', "it's", 'say "x"', "a\\b",
    "\\", "\\n", "C:\\x", "caf\u00e9", "\u00a0", "a\u00a0b", "\u0085", "a\u0085b\n", "\u2028", "a\u2029b",
    "\u200b", "\u202e", "\ufeff", "\ufeffa", "\ufffd", "\ufffe", "\U0001f600", "\U0001f600\nx\n", "\x00",
    "\x07", "\x1b[0m", "\x7f", "x" * 300, "word " * 100, "8Gi", "500m", "24h", "7d", "10.0.0.0/8",
    "sha256:ab", "r.example.com:5000/x/y@sha256:00", "/data", "/", "//", "a=b", "a@b", "a+b",
    "set -eu\nmpirun -np 2 \\\n  python x.py\n", "$(POD)", "${X}", "{{ x }}", "100%", "a;b", "a&b", "a|b",
    "<a>",
]  # fmt: skip

nasty = st.sampled_from(NASTY) | st.text(
    alphabet="ab0 1:-#\n\t'\"\\,[]{}&*!|>%@`?=~.e+_y\u0085\u00e9", max_size=12
)
strings = nasty | st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
leaves = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | strings
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(strings, inner, max_size=4),
    max_leaves=20,
)
bodies = st.dictionaries(strings, values, max_size=5)


@given(bodies)
@example({"a": [[["x"], []], [{}], {"b": [{"c": None, "d": []}]}]})
@example({"metadata": {"labels": None, "annotations": []}})
def test_every_reader_reads_back_what_is_written(body: Body) -> None:
    text = dump_object_as_block_yaml(body)
    assert load_objects(text) == [body]
    assert plain.load(text) == body
    assert yaml.load(text, yaml.CSafeLoader) == body
    assert text.endswith("\n")
    assert text.isprintable() or "\n" in text


@given(st.lists(bodies.filter(bool), max_size=3), st.lists(st.sampled_from(["gangplan", "--- x", "a: b"])))
def test_a_stream_has_its_documents_in_order(objects: list[Body], header: list[str]) -> None:
    assert load_objects(dump_all(objects, header)) == objects


@given(strings)
def test_a_scalar_has_the_same_value_in_every_context(text: str) -> None:
    written = format_scalar(text)
    assert "\n" not in written
    for document in (
        f"k: {written}",
        f"[{written}]",
        f"{{k: {written}}}",
        f"- {written} # c",
        f"{written}: k",
    ):
        [found] = [leaf for leaf in _strings(plain.load(document)) if leaf != "k" or text == "k"][:1]
        assert found == text
    assert load_objects(f"k: {written}") == [{"k": text}]


def _strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [leaf for pair in value.items() for part in pair for leaf in _strings(part)]
    if isinstance(value, list):
        return [leaf for entry in value for leaf in _strings(entry)]
    return [value] if isinstance(value, str) else [f"not a string: {value!r}"]


@given(st.dictionaries(strings, strings))
def test_the_order_of_labels_does_not_matter(labels: dict[str, str]) -> None:
    backwards = dict(reversed(labels.items()))
    texts = {
        dump_object_as_block_yaml({"metadata": {"annotations": these, "labels": these}})
        for these in (labels, backwards)
    }
    assert len(texts) == 1


def test_a_text_of_several_lines_is_written_the_same_after_any_use() -> None:
    # A text once written on one line, as a key or by a template, was cached that way and lost its block.
    body = {"data": {"script": "first\nsecond\n"}}
    before = dump_object_as_block_yaml(body)

    assert format_scalar("first\nsecond\n") == '"first\\nsecond\\n"'

    assert dump_object_as_block_yaml(body) == before == "data:\n  script: |\n    first\n    second\n"


SMALL: dict[str, tuple[Any, str]] = {
    "mapping of scalars": ({"a": 1, "b": "x"}, "{a: 1, b: x}"),
    "mapping in a mapping": ({"a": {"b": {"c": True}}}, "{a: {b: {c: true}}}"),
    "list of one": (["ALL"], "[ALL]"),
    "empty ones inside": ({"a": {}, "b": []}, "{a: {}, b: []}"),
    "colon": ({"image": "a/b:c"}, '{image: "a/b:c"}'),
    "five entries": (dict.fromkeys("abcde", 1), "{a: 1, b: 1, c: 1, d: 1, e: 1}"),
    "six entries": (dict.fromkeys("abcdef", 1), ""),
    "list of two": (["a", "b"], ""),
    "list of one mapping": ([{"a": 1}], ""),
    "text of several lines": ({"a": "b\nc\n"}, ""),
    "too long": ({"a": "x" * 100}, ""),
    "labels inside": ({"labels": {"a": "b"}}, ""),
}


@pytest.mark.parametrize("name", SMALL)
def test_small_values_are_written_on_one_line(name: str) -> None:
    value, line = SMALL[name]
    text = dump_object_as_block_yaml({"kind": "X", "value": value})
    assert plain.load(text)["value"] == value
    assert (text.splitlines()[1] == f"value: {line}") == bool(line)
    for block in ("labels", "annotations", "data"):
        assert len(dump_object_as_block_yaml({"kind": "X", block: {"a": "1"}}).splitlines()) == 3


def test_an_object_is_written_as_expected() -> None:
    body = {
        "spec": {
            "numNodes": 2,
            "suspend": False,
            "command": ["bash", "-c", "set -eu\nmpirun python train.py\n"],
            "env": [{"name": "LR", "value": "1e-4"}, {"name": "NOTE", "value": "a: b"}],
            "matrix": [[1, 2], []],
            "image": "registry.example.com:5000/nlp/train@sha256:00",
            "resources": {"limits": {"cpu": "500m", "memory": "8Gi", "nvidia.com/gpu": "4"}},
            "emptyDir": {},
            "owner": None,
        },
        "metadata": {
            "annotations": {"b": "y", "a": "x"},
            "labels": {},
            "namespace": "nlp",
            "name": "llama-3f2a",
        },
        "kind": "TrainJob",
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
    }
    expected = """\
# Written by gangplan.
#
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: llama-3f2a
  namespace: nlp
  labels: {}
  annotations:
    a: x
    b: "y"
spec:
  numNodes: 2
  suspend: false
  command:
  - bash
  - "-c"
  - |
    set -eu
    mpirun python train.py
  env:
  - {name: LR, value: "1e-4"}
  - {name: NOTE, value: "a: b"}
  matrix:
  - - 1
    - 2
  - []
  image: registry.example.com:5000/nlp/train@sha256:00
  resources: {limits: {cpu: 500m, memory: 8Gi, nvidia.com/gpu: "4"}}
  emptyDir: {}
  owner: null
"""
    assert dump_object_as_block_yaml(body, header=["Written by gangplan.", ""]) == expected
    assert list(body) == ["spec", "metadata", "kind", "apiVersion"]


def test_several_lines_become_a_block_only_where_every_reader_agrees() -> None:
    assert dump_object_as_block_yaml({"a": "b\nc"}) == "a: |-\n  b\n  c\n"
    assert dump_object_as_block_yaml({"a": ["b\n\n  c\n"]}) == "a:\n- |\n  b\n\n    c\n"
    for text in ("b \nc", "\tb\nc", "b\n\tc", " b\nc", "\nb", "b\n\n", "b\r\nc", "b\u2028\nc", "b\x07\nc"):
        assert dump_object_as_block_yaml({"a": text}).startswith('a: "')


@pytest.mark.parametrize(
    ("text", "written"),
    {
        "word": "word", "3": '"3"', "y": '"y"', "None": '"None"', "--fp16": "--fp16", "-c": '"-c"',
        "8Gi": "8Gi", "0Gi": '"0Gi"', "1E": '"1E"', "a b": '"a b"', "x:1": "x:1", "x:": '"x:"',
        "a\nb": '"a\\nb"', "\u0085\u2028\ufeff": '"\\u0085\\u2028\\ufeff"', "caf\u00e9": '"caf\u00e9"',
        "\U0001f600": '"\U0001f600"', "\U000e0001": '"\\U000e0001"', 'a"\\': '"a\\"\\\\"',
        "\x1b": '"\\u001b"', "\u202e": '"\\u202e"',
    }.items(),
)  # fmt: skip
def test_texts_are_quoted_only_where_needed(text: str, written: str) -> None:
    assert format_scalar(text) == written


def test_other_scalars_are_written_as_json() -> None:
    assert [format_scalar(value) for value in (True, False, None, 0, -1, 2**64 - 1)] == [
        "true", "false", "null", "0", "-1", "18446744073709551615",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (1.5, TypeError),
        (1.0, TypeError),
        ((1,), TypeError),
        (b"x", TypeError),
        ({1: "x"}, TypeError),
        ({"x": {None: 1}}, TypeError),
        (2**64, ValueError),
        (-(2**63) - 1, ValueError),
        ("\ud800", ValueError),
        ({"k" * 1001: 1}, ValueError),
        ({"\u0085" * 200: 1}, ValueError),
    ],
)
def test_values_that_yaml_cannot_represent_are_refused(value: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        dump_object_as_block_yaml({"a": value})
    with pytest.raises(error):
        dump_object_as_block_yaml({"a": [value]})


def test_each_header_is_one_comment_line() -> None:
    for line in ("a\nb", "a\rb", "a\u2028b", "\x00"):
        with pytest.raises(ValueError, match="not one line"):
            dump_object_as_block_yaml({"a": 1}, header=[line])
    assert dump_all([], ['say "x" \\']) == '# say "x" \\\n'


def test_references_name_objects() -> None:
    job = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "nlp"}}
    assert ref_of(job) == Ref("v1", "Pod", "nlp", "a")
    assert str(ref_of(job)) == "Pod/nlp/a"
    assert str(Ref("v1", "Namespace", "", "nlp")) == "Namespace/nlp"
    assert ref_of({}) == ref_of({"metadata": None}) == Ref("", "", "", "")
    assert sorted([Ref("v1", "B", "", "a"), Ref("v1", "A", "z", "a")])[0].kind == "A"


def test_walk_yields_leaves_with_their_paths() -> None:
    body = {"a": {"b": [1, {"c": "x"}, []]}, "d": {}, "e": None}
    assert list(walk_leaves(body)) == [
        (("a", "b", 0), 1), (("a", "b", 1, "c"), "x"), (("a", "b", 2), []), (("d",), {}), (("e",), None),
    ]  # fmt: skip


def _config_map(texts: list[str]) -> Body:
    annotations = {f"example.com/n{index}": text for index, text in enumerate(texts)}
    metadata = {"name": "nasty", "annotations": annotations}
    data = {f"n{index}": text for index, text in enumerate(texts)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


@pytest.mark.real_tool("kubectl")
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not on PATH")
def test_kubernetes_reads_back_every_string(tmp_path: Path) -> None:
    (tmp_path / "in.yaml").write_text(dump_object_as_block_yaml(_config_map(NASTY)))
    command = ["kubectl", "annotate", "--local", "-f", "in.yaml", "example.com/seen=x", "-o", "json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True, timeout=60)
    seen = json.loads(done.stdout)
    expected = _config_map(NASTY)
    assert seen["metadata"]["annotations"].pop("example.com/seen") == "x"
    assert seen["metadata"]["annotations"] == expected["metadata"]["annotations"]
    assert seen["data"] == expected["data"]


# Strings that kustomize 5.5 reads correctly but cannot write: U+0085 becomes a line break, the others stop
# it.
KUSTOMIZE_LOSES = ("\u0085", "\x7f", "\ufffe", "\ta\nb")


@pytest.mark.real_tool("kubectl")
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not on PATH")
def test_kustomize_passes_on_every_string(tmp_path: Path) -> None:
    kept = [text for text in NASTY if not any(lost in text for lost in KUSTOMIZE_LOSES)]
    body = _config_map(kept)
    (tmp_path / "in.yaml").write_text(dump_object_as_block_yaml(body))
    (tmp_path / "kustomization.yaml").write_text("resources: [in.yaml]\n")
    command = ["kubectl", "kustomize", "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True, timeout=60)
    assert load_objects(done.stdout) == [body]


def test_a_script_is_laid_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Doing it for every run that has the script took more than half the time of writing a run."""
    calls: list[str] = []
    monkeypatch.setattr(objects, "_NOT_LITERAL", Counted(objects._NOT_LITERAL, calls))
    script = "set -eu\nmpirun hostname  # laid out once\n"
    texts = {
        dump_object_as_block_yaml({"kind": "Pod", "spec": {"name": f"run-{number}", "script": script}})
        for number in range(50)
    }
    assert len(texts) == 50
    assert calls == [script]


class Counted:
    """A pattern that records the texts that it is searched in."""

    def __init__(self, pattern: Any, calls: list[str]) -> None:
        self.pattern, self.calls = pattern, calls

    def search(self, text: str) -> Any:
        """Search as the pattern does."""
        self.calls.append(text)
        return self.pattern.search(text)
