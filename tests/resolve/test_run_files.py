"""Files next to a spec: they come with the run, belong to its identity, and end with it."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gangplan.emit import is_run_file
from gangplan.source import load_objects
from tests import workspaces
from tests.resolve.test_workdir import SPEC, pods, put
from tests.workspaces import gangplan, rendered

FOLDER = "specs/nlp"
SETTINGS = '{"fp16": true}\n'
LINES = "files: {./ds.json: /etc/ds/ds.json, ./files/run.yaml: /etc/run.yaml}\n"
YAML = "a: 1\r\nb: ö # no line break at the end"


@pytest.fixture
def work(root: Path) -> Path:
    """Create the small workspace with two files next to its spec."""
    write(root, "ds.json", SETTINGS.encode())
    write(root, "files/run.yaml", YAML.encode())
    return root


def write(root: Path, name: str, data: bytes) -> None:
    path = root / FOLDER / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def told(root: Path, lines: str) -> list[Any]:
    put(root, lines)
    return list(gangplan("validate", "-C", root).findings)


def objects(root: Path) -> dict[str, Any]:
    """Render, and return the objects of the run by kind."""
    outcome = gangplan("render", "-C", root)
    assert outcome.code == 0, outcome.err
    (text,) = (text for path, text in rendered(root).items() if is_run_file(path))
    return {body["kind"]: body for body in load_objects(text)}


def names(root: Path) -> list[str]:
    return [path for path in rendered(root) if is_run_file(path)]


@pytest.mark.parametrize("image", ["openmpi", "pytorch"])
def test_every_pod_has_the_files_byte_by_byte(image: str, work: Path) -> None:
    put(work, LINES, image)
    found = objects(work)
    made, run = found["ConfigMap"], found["TrainJob"]["metadata"]["name"]
    assert made["data"] == {"ds.json": SETTINGS, "run.yaml": YAML}
    assert made["immutable"] is True
    assert made["metadata"]["name"] == f"{run}-files"
    assert made["metadata"]["annotations"]["argocd.argoproj.io/sync-wave"] == "-5"
    assert list(found).index("ConfigMap") < list(found).index("TrainingRuntime")
    for pod in pods(work).values():
        assert {"name": "files", "configMap": {"name": f"{run}-files"}} in pod["volumes"]
        mounts = [one for one in pod["containers"][0]["volumeMounts"] if one["name"] == "files"]
        assert mounts == [
            {"name": "files", "mountPath": "/etc/ds/ds.json", "subPath": "ds.json", "readOnly": True},
            {"name": "files", "mountPath": "/etc/run.yaml", "subPath": "run.yaml", "readOnly": True},
        ]
    assert gangplan("validate", "-C", work).findings == []


@pytest.mark.parametrize(
    "data", [b"\xff\xfe\x00", b"a\0b", b"\xef\xbb\xbfa: 1\n", b"\x1b[1m", b"\xed\xa0\x80"]
)
def test_binary_files_keep_their_bytes(data: bytes, work: Path) -> None:
    write(work, "model.bin", data)
    put(work, "files: {./model.bin: /etc/model.bin}\n")
    made = objects(work)["ConfigMap"]
    assert "data" not in made
    assert base64.b64decode(made["binaryData"]["model.bin"]) == data


@pytest.mark.parametrize(
    "data", [b"", b"\n", b"a\tb\r\n", " ä\u2003\n\n".encode(), b"- 1\n- '#\n", b"x" * 5000]
)
def test_text_files_keep_their_bytes(data: bytes, work: Path) -> None:
    write(work, "a.txt", data)
    put(work, "files: {./a.txt: /etc/a.txt}\n")
    assert objects(work)["ConfigMap"]["data"]["a.txt"].encode() == data


def test_equal_file_names_get_different_keys(work: Path) -> None:
    write(work, "b/ds.json", b"{}")
    write(work, "files/ä b.json", b"[]")
    put(work, 'files: {./ds.json: /etc/a, ./b/ds.json: /etc/b, "./files/ä b.json": /etc/c}\n')
    assert objects(work)["ConfigMap"]["data"] == {"ds.json": SETTINGS, "2-ds.json": "{}", "--b.json": "[]"}
    assert gangplan("validate", "-C", work).findings == []


def test_other_bytes_are_another_run(work: Path) -> None:
    """This includes answers kept between commands, which identify a spec by its bytes."""
    put(work, LINES)
    assert gangplan("render", "-C", work).code == 0
    (before,) = names(work)
    assert gangplan("render", "-C", work).code == 0
    assert names(work) == [before]
    write(work, "ds.json", SETTINGS.replace("true", "false").encode())
    outcome = gangplan("validate", "-C", work)
    assert "run-replaced" in outcome.err or "stale" in outcome.err
    assert gangplan("render", "-C", work).code == 0
    (after,) = names(work)
    assert after != before


def test_a_removed_file_is_reported(work: Path) -> None:
    put(work, LINES)
    assert gangplan("render", "-C", work).code == 0
    (work / FOLDER / "ds.json").unlink()
    (found,) = gangplan("validate", "-C", work).findings
    assert (found.rule, found.place) == ("file-missing", f"{SPEC}:9:9")
    write(work, "ds.json", SETTINGS.encode())
    assert gangplan("validate", "-C", work).findings == []


def test_runs_without_files_keep_their_names(work: Path) -> None:
    put(work, "")
    assert gangplan("render", "-C", work).code == 0
    assert "ConfigMap" not in objects(work)


# The entry, the only rule that it breaks, and words of message or help.
CASES = {
    "not there": ("./dss.json: /etc/a", "file-missing", "Did you mean ./ds.json?"),
    "in a folder that is not there": ("./x/ds.json: /etc/a", "file-missing", "no file specs/nlp/x/ds.json"),
    "out of the folder": ("./../research/a.json: /etc/a", "file-unusable", "not in the folder"),
    "out and in again": ("./../nlp/ds.json: /etc/a", "", ""),
    "another workspace's": ("./../../../etc/passwd: /etc/a", "file-unusable", "not in the folder"),
    "a folder": ("./files: /etc/a", "file-unusable", "is a folder"),
    "the folder itself": ("./files/..: /etc/a", "file-unusable", "not in the folder"),
    "the team's file": ("./team.yaml: /etc/a", "file-unusable", "is read as a spec"),
    "a hidden file": ("./.env-file: /etc/a", "", ""),
    "over a program": ("./ds.json: /usr/bin", "mount-hides", ""),
    "over the hosts": ("./ds.json: /etc/mpi/hostfile", "mount-collision", ""),
    "below temporary files": ("./ds.json: /tmp/ds.json", "", ""),
    "twice at one path": ("./ds.json: /etc/a, ./files/run.yaml: /etc/a", "mount-collision", ""),
    "twice the same": ("./ds.json: /etc/a, ././ds.json: /etc/b", "", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_each_wrong_entry_breaks_one_rule(name: str, work: Path) -> None:
    entry, rule, words = CASES[name]
    write(work, ".env-file", b"A=1\n")
    found = told(work, f"files: {{{entry}}}\n")
    assert [one.rule for one in found] == ([rule] if rule else [])
    if rule:
        assert found[0].place.startswith(f"{SPEC}:9:")
        assert words in f"{found[0].message} {found[0].help}"
        assert found[0].help


def test_the_size_of_a_config_map_is_the_limit(work: Path) -> None:
    write(work, "a.bin", b"a" * (1 << 20))
    assert told(work, "files: {./a.bin: /etc/a}\n") == []
    (found,) = told(work, "files: {./a.bin: /etc/a, ./ds.json: /etc/b}\n")
    assert (found.rule, found.place) == ("files-too-large", f"{SPEC}:9:9")
    assert "1048591 bytes" in found.message
    write(work, "a.bin", b"a" * ((1 << 20) + 1))
    (found,) = told(work, "files: {./a.bin: /etc/a}\n")
    assert found.rule == "files-too-large"


def test_a_link_is_refused(work: Path) -> None:
    (work / FOLDER / "ds.json").unlink()
    (work / FOLDER / "ds.json").symlink_to("/etc/hostname")
    (found,) = told(work, LINES)
    assert (found.rule, found.place) == ("file-unreadable", f"{FOLDER}/ds.json")


def test_secrets_in_files_are_reported(work: Path) -> None:
    write(work, "ds.json", b'{"token": "hf_' + b"aZ3kQ9xW7mB2nC5vR8tY1uE4iO6pL0sDfg" + b'"}\n')
    (found,) = told(work, LINES)
    assert found.rule.startswith("secret-")
    assert found.place.startswith(f"{FOLDER}/ds.json:1:")


def test_a_spec_among_the_files_is_reported(work: Path) -> None:
    workspaces.write(work, {f"{FOLDER}/files/other.yaml": workspaces.SPEC})
    (found,) = told(work, LINES)
    assert (found.rule, found.place) == ("spec-file-name", f"{FOLDER}/files/other.yaml")


def test_a_stopped_run_keeps_its_files(work: Path) -> None:
    """Its record has the ConfigMap as it was, and a later change of the file does not affect it."""
    put(work, LINES)
    before = objects(work)
    put(work, LINES + "state: stopped\n")
    after = objects(work)
    assert after["ConfigMap"]["data"] == before["ConfigMap"]["data"]
    assert after["ConfigMap"]["metadata"]["name"] == before["ConfigMap"]["metadata"]["name"]
    assert "spec" not in after["ConfigMap"]
    annotations = after["ConfigMap"]["metadata"]["annotations"]
    assert annotations["gangplan.dev/state"] == "stopped"
    assert "Prune=false" not in str(annotations)


@pytest.mark.parametrize("then", [LINES, "", "files: {./files/run.yaml: /etc/run.yaml}\n"])
def test_the_record_of_an_earlier_run_has_its_own_files(then: str, work: Path) -> None:
    put(work, LINES)
    before = objects(work)
    old = before["TrainJob"]["metadata"]["name"]
    write(work, "ds.json", b"{}\n")
    put(work, f"{then}retired: [{old}]\nrun: 2\n")
    outcome = gangplan("render", "-C", work)
    assert outcome.code == 0, outcome.err
    text = next(text for path, text in rendered(work).items() if path.endswith(f"{old}.yaml"))
    record = {body["kind"]: body for body in load_objects(text)}
    assert record["ConfigMap"]["data"] == before["ConfigMap"]["data"]
    assert record["TrainJob"]["spec"]["suspend"] is True


def test_the_record_of_a_run_without_files_has_no_config_map(work: Path) -> None:
    put(work, "")
    old = objects(work)["TrainJob"]["metadata"]["name"]
    put(work, f"{LINES}retired: [{old}]\n")
    outcome = gangplan("render", "-C", work)
    assert outcome.code == 0, outcome.err
    text = next(text for path, text in rendered(work).items() if path.endswith(f"{old}.yaml"))
    assert "ConfigMap" not in {body["kind"] for body in load_objects(text)}


def test_why_leads_to_the_file(work: Path) -> None:
    put(work, LINES)
    objects(work)
    (path,) = names(work)
    lines = rendered(work)[path].decode().splitlines()
    for words, place in (("fp16", f"{FOLDER}/ds.json"), ("/etc/ds/ds.json", "files")):
        line = next(n for n, one in enumerate(lines, 1) if words in one)
        out = gangplan("why", "-C", work, f"rendered/{path.removeprefix('rendered/')}:{line}").out
        assert place in out


def test_list_specs_ignores_files(work: Path) -> None:
    put(work, LINES)
    assert "run.yaml" not in gangplan("list", "specs", "-C", work).out


def test_a_review_shows_a_run_replaced_by_a_changed_file(work: Path) -> None:
    """Only the bytes of the file change; the spec stays as it was."""
    put(work, LINES)
    assert gangplan("render", "-C", work).code == 0
    git = ["git", "-C", str(work), "-c", "user.name=t", "-c", "user.email=t@example.com"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "before"]):
        subprocess.run([*git, *words], check=True)
    (old,) = names(work)
    write(work, "ds.json", b"{}\n")
    assert gangplan("render", "-C", work).code == 0
    (new,) = names(work)
    before, after = (path.rpartition("/")[2].removesuffix(".yaml") for path in (old, new))
    outcome = gangplan("plan", "--base", "HEAD", "-C", work)
    assert before in outcome.out + outcome.err
    assert after in outcome.out + outcome.err
    outcome = gangplan("validate", "--base", "HEAD", "-C", work)
    assert before in outcome.err + outcome.out
