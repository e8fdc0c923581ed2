"""Verdicts of kubeconform: each resource has one, and nothing checked is never success."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gangplan.errors import ToolError
from gangplan.tools import kubeconform
from gangplan.tools.find import FoundTool
from gangplan.tools.kubeconform import Kubeconform, schema_file
from gangplan.tools.pins import KUBECONFORM_TOOL
from tests.tools.programs import fake

SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["data"],
    "properties": {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        "data": {"type": "object", "additionalProperties": {"type": "string"}},
        "every": {"format": "duration"},
    },
}


@pytest.fixture
def schemas(tmp_path: Path) -> Path:
    """Return a schema set for ConfigMaps only."""
    folder = tmp_path / "schemas {{set}}"
    folder.mkdir()
    (folder / "configmap-v1.json").write_text(json.dumps(SCHEMA))
    return folder


def config_map(name: str, body: str = "data: {ranks: '8'}") -> bytes:
    """Return one document."""
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: nlp}}\n{body}\n".encode()


def faked(kind: str, folder: Path, **files: str) -> Kubeconform:
    """Return a wrapper around a fake."""
    path = fake(kind, "kubeconform", folder / "fake", **files)
    return Kubeconform(FoundTool(KUBECONFORM_TOOL, path, "0.7.0", "PATH"))


def answer(*statuses: str) -> str:
    """Return JSON output with one resource for each status."""
    resources = [{"filename": "/x.yaml", "kind": "ConfigMap", "version": "v1", "status": s} for s in statuses]
    return json.dumps({"resources": resources})


@pytest.mark.parametrize(
    ("kind", "files", "why"),
    [
        ("crash", {}, "kubeconform crashed: panic"),
        ("garbage", {}, "did not print its JSON output"),
        ("replay", {"stdout": '{"resources": 5}'}, "did not print its JSON output"),
        ("replay", {"stderr": "failed parsing command line", "code": "1"}, "failed parsing command line"),
        ("replay", {"stdout": answer("statusValid"), "code": "1"}, "ended with code 1 but its verdicts"),
        ("replay", {"stdout": answer("statusInvalid")}, "ended with code 0 but its verdicts"),
        ("replay", {"stdout": answer("statusSkipped")}, "ended with code 0 but its verdicts"),
        ("replay", {"stdout": answer()}, "nothing was checked"),
        ("replay", {"stdout": answer("")}, "nothing was checked"),
        ("replay", {"code": "7"}, "failed with exit code 7"),
    ],
)
def test_output_without_a_verdict_is_an_error(
    kind: str, files: dict[str, str], why: str, tmp_path: Path, schemas: Path
) -> None:
    with pytest.raises(ToolError, match=why):
        faked(kind, tmp_path, **files).check(config_map("a"), schemas)


def test_a_hang_is_an_error(tmp_path: Path, schemas: Path) -> None:
    with pytest.raises(ToolError, match=r"did not end within 0\.3 s"):
        faked("hang", tmp_path).check(config_map("a"), schemas, timeout_s=0.3)


def test_checking_nothing_is_an_error(tmp_path: Path, schemas: Path) -> None:
    checker = faked("garbage", tmp_path)
    with pytest.raises(ToolError, match="nothing was checked: no manifest"):
        checker.check([], schemas)
    with pytest.raises(ToolError, match="nothing was checked: there is no schema folder"):
        checker.check(config_map("a"), tmp_path / "absent")
    wrong = tmp_path / "a.txt"
    wrong.write_bytes(config_map("a"))
    for file in (wrong, tmp_path / "absent.yaml"):
        with pytest.raises(ToolError, match=r"nothing was checked in .*: it is not a YAML or JSON file"):
            checker.check([file], schemas)


@pytest.mark.parametrize(
    ("api_version", "kind", "file"),
    [
        ("v1", "ConfigMap", "configmap-v1.json"),
        ("trainer.kubeflow.org/v1alpha1", "TrainJob", "trainjob-trainer-v1alpha1.json"),
        ("kueue.x-k8s.io/v1beta2", "LocalQueue", "localqueue-kueue-v1beta2.json"),
        ("networking.k8s.io/v1", "NetworkPolicy", "networkpolicy-networking-v1.json"),
    ],
)
def test_schema_files_are_named_by_kind_group_and_version(api_version: str, kind: str, file: str) -> None:
    assert schema_file(api_version, kind) == file


@pytest.mark.real_tool("kubeconform")
class TestReal:
    """Tests with the program itself."""

    def test_each_valid_document_has_a_verdict(self, real_kubeconform: Kubeconform, schemas: Path) -> None:
        text = b"---\n" + config_map("a") + b"---\n# nothing\n---\n" + config_map("b")
        verdicts = real_kubeconform.check(text, schemas, expected=2)
        assert [(v.name, v.kind, v.api_version, v.status, v.message) for v in verdicts] == [
            ("a", "ConfigMap", "v1", "valid", ""),
            ("b", "ConfigMap", "v1", "valid", ""),
        ]
        assert [(v.document, str(v.file)) for v in verdicts] == [(0, "-"), (1, "-")]

    def test_an_invalid_document_has_all_its_problems(
        self, real_kubeconform: Kubeconform, schemas: Path
    ) -> None:
        text = config_map("a", "data: {ranks: 8, b: {c: 1}}\nextra: 1")
        (verdict,) = real_kubeconform.check(text, schemas)
        assert verdict.status == "invalid"
        assert set(verdict.problems) == {
            ("", "additional properties 'extra' not allowed"),
            ("/data/ranks", "got number, want string"),
            ("/data/b", "got object, want string"),
        }
        assert verdict.path in ("", "/data/ranks", "/data/b")
        assert "/data/ranks: got number, want string" in verdict.message

    def test_duplicate_keys_are_errors_only_if_strict(
        self, real_kubeconform: Kubeconform, schemas: Path
    ) -> None:
        text = config_map("a", "data: {a: '1', a: '2'}")
        (verdict,) = real_kubeconform.check(text, schemas)
        assert verdict.status == "error"
        assert 'key "a" already set' in verdict.message
        (verdict,) = real_kubeconform.check(text, schemas, strict=False)
        assert verdict.status == "valid"

    def test_nothing_is_valid_without_a_schema(self, real_kubeconform: Kubeconform, schemas: Path) -> None:
        text = b"apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: a}\n"
        (verdict,) = real_kubeconform.check(text, schemas)
        assert verdict.status == "error"
        wanted = schemas.resolve() / "trainjob-trainer-v1alpha1.json"
        assert verdict.message.endswith(f"TrainJob was not checked: there is no schema {wanted}")
        wanted.write_text('{"type": "no such type"}')
        (verdict,) = real_kubeconform.check(text, schemas)
        assert (verdict.status, "is broken" in verdict.message) == ("error", True)

    @pytest.mark.parametrize("text", [b"", b"---\n", b"# only a comment\n", b"---\n---\n"])
    def test_empty_input_is_an_error(self, text: bytes, real_kubeconform: Kubeconform, schemas: Path) -> None:
        with pytest.raises(ToolError, match="nothing was checked in"):
            real_kubeconform.check(text, schemas)

    def test_an_empty_file_among_others_is_an_error(
        self, real_kubeconform: Kubeconform, schemas: Path, tmp_path: Path
    ) -> None:
        full, empty = tmp_path / "a.yaml", tmp_path / "b.yaml"
        full.write_bytes(config_map("a"))
        empty.write_bytes(b"---\n")
        with pytest.raises(ToolError, match=r"nothing was checked in .*b\.yaml"):
            real_kubeconform.check([full, empty], schemas)

    def test_a_wrong_count_is_an_error(self, real_kubeconform: Kubeconform, schemas: Path) -> None:
        with pytest.raises(ToolError, match="judged 1 resources of 2"):
            real_kubeconform.check(config_map("a"), schemas, expected=2)

    def test_many_files_are_judged_in_their_order(
        self, real_kubeconform: Kubeconform, schemas: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(kubeconform, "_MAX_ARGUMENT_BYTES", 2000)
        monkeypatch.chdir(tmp_path)
        files = [Path(f"-n{number}.yaml") for number in range(60)]
        for file in files:
            file.write_bytes(config_map(file.stem) + b"---\n" + config_map("second"))
        verdicts = real_kubeconform.check(files, schemas, expected=120)
        assert [v.file for v in verdicts[::2]] == files
        assert [v.name for v in verdicts[::2]] == [file.stem for file in files]
        assert [v.document for v in verdicts] == [0, 1] * 60

    def test_large_input_is_judged_correctly(self, real_kubeconform: Kubeconform, schemas: Path) -> None:
        """Through its standard input, 15 MB would give invented syntax errors."""
        body = "data:\n" + "".join(f"  k{number}: '{'x' * 80}'\n" for number in range(4000))
        text = b"---\n".join(config_map(f"cm-{number}", body) for number in range(40))
        verdicts = real_kubeconform.check(text, schemas, expected=40)
        assert [(v.name, v.status) for v in verdicts] == [(f"cm-{number}", "valid") for number in range(40)]

    def test_a_panic_is_reported_as_a_crash(self, real_kubeconform: Kubeconform, schemas: Path) -> None:
        """0.7.0 asserts that the value of a `format: duration` is a string before it looks."""
        with pytest.raises(ToolError, match="kubeconform crashed: panic: interface conversion"):
            real_kubeconform.check(config_map("a", "data: {}\nevery: 5"), schemas)
