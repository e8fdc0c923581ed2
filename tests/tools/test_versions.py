"""A version is asked for once, and again when the program changes."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from gangplan.errors import ToolError
from gangplan.tools import versions
from gangplan.tools.pins import KUBECONFORM_TOOL, KUSTOMIZE_TOOL
from gangplan.tools.provision import install_pinned_tool
from gangplan.tools.versions import (
    ask_kubectl_for_kustomize_version,
    find_tool_cache_root,
    recall_tool_version,
    version_of,
)
from tests.tools.programs import binary_of, fake


class Asked:
    """A probe that counts how often it is asked."""

    def __init__(self, answer: str | None) -> None:
        self.answer = answer
        self.times = 0

    def __call__(self, *_: object) -> str | None:
        self.times += 1
        return self.answer


def test_a_binary_is_asked_once(tmp_path: Path) -> None:
    program, asked = binary_of(KUSTOMIZE_TOOL, "5.8.1", tmp_path / "kustomize"), Asked("5.8.1")
    assert [recall_tool_version(program, asked) for _ in range(3)] == ["5.8.1"] * 3
    assert asked.times == 1


def test_a_link_counts_as_its_target(tmp_path: Path) -> None:
    program, asked = binary_of(KUSTOMIZE_TOOL, "5.8.1", tmp_path / "kustomize"), Asked("5.8.1")
    link = tmp_path / "link"
    link.symlink_to(program)
    recall_tool_version(program, asked)
    recall_tool_version(link, asked)
    assert asked.times == 1


def test_a_changed_binary_is_asked_again(tmp_path: Path) -> None:
    program = binary_of(KUSTOMIZE_TOOL, "5.8.0", tmp_path / "kustomize")
    assert version_of(KUSTOMIZE_TOOL, program) == "5.8.0"
    binary_of(KUSTOMIZE_TOOL, "5.8.1", program)
    os.utime(program, ns=(1, 1))
    assert version_of(KUSTOMIZE_TOOL, program) == "5.8.1"


def test_a_script_is_asked_each_time(tmp_path: Path) -> None:
    program, asked = fake("wrong_version", "kustomize", tmp_path), Asked("5.8.1")
    recall_tool_version(program, asked)
    recall_tool_version(program, asked)
    assert asked.times == 2


@pytest.mark.parametrize(
    "damage",
    [b"", b"\xff\xfe", b"[1]", b"[" * 100_000, b'{"format": 1, "programs": [1]}', b'{"format": 9}', b"nul"],
)
def test_a_damaged_memory_is_discarded(damage: bytes, tmp_path: Path, cache: Path) -> None:
    cache.mkdir()
    (cache / "versions.json").write_bytes(damage)
    program = binary_of(KUSTOMIZE_TOOL, "5.8.1", tmp_path / "kustomize")
    assert version_of(KUSTOMIZE_TOOL, program) == "5.8.1"
    assert json.loads((cache / "versions.json").read_bytes())["format"] == 1


@pytest.mark.parametrize("entry", [None, [], ["5.8.1"], [1, 2, 3, 4], "5.8.1", {"a": 1}])
def test_a_damaged_entry_is_asked_again(entry: object, tmp_path: Path, cache: Path) -> None:
    program = binary_of(KUSTOMIZE_TOOL, "5.8.1", tmp_path / "kustomize")
    cache.mkdir()
    (cache / "versions.json").write_text(json.dumps({"format": 1, "programs": {str(program): entry}}))
    assert version_of(KUSTOMIZE_TOOL, program) == "5.8.1"


def test_a_cache_that_cannot_be_written_only_costs_time(tmp_path: Path, cache: Path) -> None:
    cache.write_text("a file where the folder should be")
    program = binary_of(KUSTOMIZE_TOOL, "5.8.1", tmp_path / "kustomize")
    assert version_of(KUSTOMIZE_TOOL, program) == "5.8.1"


def test_the_memory_stays_small(tmp_path: Path, cache: Path) -> None:
    for number in range(versions._MAX_REMEMBERED + 5):
        version_of(KUSTOMIZE_TOOL, binary_of(KUSTOMIZE_TOOL, "5.8.1", tmp_path / str(number)))
    programs = json.loads((cache / "versions.json").read_bytes())["programs"]
    assert len(programs) == versions._MAX_REMEMBERED
    assert str(tmp_path / "68") in programs


def test_a_build_from_a_checkout_is_asked(tmp_path: Path) -> None:
    """With `(devel)` in the build information, only the program knows (and a fake of it cannot be run
    here)."""
    program = fake("replay", "kubeconform", tmp_path, stdout="v0.7.0\n")
    assert version_of(KUBECONFORM_TOOL, program) == "0.7.0"
    program = fake("replay", "kubeconform", tmp_path, stdout="development\n")
    assert version_of(KUBECONFORM_TOOL, program) is None


def test_the_version_of_kustomize_in_kubectl_is_read(tmp_path: Path) -> None:
    answer = json.dumps({"clientVersion": {"gitVersion": "v1.32.4"}, "kustomizeVersion": "v5.5.0"})
    program = fake("replay", "kubectl", tmp_path, stdout=answer)
    assert ask_kubectl_for_kustomize_version(program) == "5.5.0"
    for nothing in ("{}", "[]", "no", '{"kustomizeVersion": 5}'):
        (tmp_path / "stdout").write_text(nothing)
        assert ask_kubectl_for_kustomize_version(program) is None


def test_variables_decide_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("GANGPLAN_TOOL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/is/ignored")
    assert find_tool_cache_root() == tmp_path / ".cache" / "gangplan" / "tools"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert find_tool_cache_root() == tmp_path / "xdg" / "gangplan" / "tools"
    monkeypatch.setenv("GANGPLAN_TOOL_CACHE", "~/tools")
    assert find_tool_cache_root() == tmp_path / "tools"


def test_a_user_without_a_home_has_no_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("GANGPLAN_TOOL_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    assert version_of(KUSTOMIZE_TOOL, binary_of(KUSTOMIZE_TOOL, "5.8.1", tmp_path / "kustomize")) == "5.8.1"
    with pytest.raises(ToolError, match="cannot be installed into") as caught:
        install_pinned_tool(KUSTOMIZE_TOOL)
    assert "GANGPLAN_TOOL_CACHE" in (caught.value.help or "")
