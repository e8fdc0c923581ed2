"""The choice of a program: override, PATH, cache; and why another one is not used."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gangplan.errors import ToolError
from gangplan.tools import buildinfo, versions
from gangplan.tools.find import (
    build_cached_path,
    find_executables_on_path,
    find_required_tool,
    find_tool,
    search_tool,
)
from gangplan.tools.pins import KUBECONFORM_TOOL, KUSTOMIZE_TOOL, PINNED_TOOLS, parse_tool_version
from tests.tools.programs import binary_of, fake


def test_override_comes_first(path_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    binary_of(KUSTOMIZE_TOOL, "5.8.1", path_folder / "kustomize")
    chosen = binary_of(KUSTOMIZE_TOOL, "5.8.0", tmp_path / "mine")
    monkeypatch.setenv("GANGPLAN_KUSTOMIZE", str(chosen))
    found = find_required_tool(KUSTOMIZE_TOOL)
    assert (found.path, found.version, found.origin) == (chosen, "5.8.0", "override")
    assert found.label == "kustomize 5.8.0"


def test_a_wrong_override_is_an_error(path_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    binary_of(KUSTOMIZE_TOOL, "5.8.1", path_folder / "kustomize")
    monkeypatch.setenv("GANGPLAN_KUSTOMIZE", "/absent/kustomize")
    with pytest.raises(ToolError, match="GANGPLAN_KUSTOMIZE=/absent/kustomize: no such file"):
        find_tool(KUSTOMIZE_TOOL)
    old = binary_of(KUSTOMIZE_TOOL, "5.4.3", path_folder / "old")
    monkeypatch.setenv("GANGPLAN_KUSTOMIZE", str(old))
    with pytest.raises(ToolError, match=r"is version 5\.4\.3, not 5\.8\.x"):
        find_tool(KUSTOMIZE_TOOL)


def test_path_comes_before_the_cache(path_folder: Path) -> None:
    here = binary_of(KUSTOMIZE_TOOL, "5.8.0", path_folder / "kustomize")
    binary_of(KUSTOMIZE_TOOL, "5.8.1", build_cached_path(KUSTOMIZE_TOOL))
    assert search_tool(KUSTOMIZE_TOOL).found == find_tool(KUSTOMIZE_TOOL)
    assert find_required_tool(KUSTOMIZE_TOOL).path == here
    assert find_required_tool(KUSTOMIZE_TOOL).origin == "PATH"


def test_an_unacceptable_version_is_skipped_and_named(path_folder: Path) -> None:
    fake("wrong_version", "kustomize", path_folder)
    cached = binary_of(KUSTOMIZE_TOOL, "5.8.1", build_cached_path(KUSTOMIZE_TOOL))
    outcome = search_tool(KUSTOMIZE_TOOL)
    assert outcome.found is not None
    assert (outcome.found.path, outcome.found.origin) == (cached, "cache")
    assert [str(refused) for refused in outcome.refused] == [
        f"{path_folder / 'kustomize'} is version 4.5.7, not 5.8.x"
    ]


def test_a_later_folder_of_path_may_have_a_better_one(
    path_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    binary_of(KUSTOMIZE_TOOL, "5.7.0", path_folder / "kustomize")
    better = binary_of(KUSTOMIZE_TOOL, "5.8.2", tmp_path / "later" / "kustomize")
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{better.parent}")
    assert find_required_tool(KUSTOMIZE_TOOL).path == better


@pytest.mark.parametrize("kind", ["garbage", "crash"])
def test_a_program_that_does_not_say_its_version_is_refused(kind: str, path_folder: Path) -> None:
    fake(kind, "kubeconform", path_folder)
    outcome = search_tool(KUBECONFORM_TOOL)
    assert outcome.found is None
    assert "does not say its version" in outcome.refused[0].reason


def test_a_missing_program_is_reported_with_help(path_folder: Path) -> None:
    fake("wrong_version", "kustomize", path_folder)
    assert find_tool(KUSTOMIZE_TOOL) is None
    with pytest.raises(
        ToolError, match=r"kustomize 5\.8\.x is neither on PATH .* is version 4\.5\.7"
    ) as caught:
        find_required_tool(KUSTOMIZE_TOOL)
    assert "gangplan tools install kustomize" in (caught.value.help or "")


def test_the_current_folder_is_never_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    binary_of(KUSTOMIZE_TOOL, "5.8.1", tmp_path / "kustomize")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", ":.:")
    assert list(find_executables_on_path("kustomize")) == []


def test_warm_look_up_starts_no_program(path_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for tool in PINNED_TOOLS:
        binary_of(tool, tool.version, build_cached_path(tool))
        assert find_tool(tool)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a program was started, or a binary was read")

    monkeypatch.setattr(versions, "run_program", refuse)
    monkeypatch.setattr(buildinfo, "read_build_info", refuse)
    assert [find_tool(tool) is not None for tool in PINNED_TOOLS] == [True, True]


@pytest.mark.parametrize(
    ("version", "accepted"),
    [
        ("5.8.0", True),
        ("5.8.12", True),
        ("v5.8.1-dirty", True),
        ("5.9.0", False),
        ("5.80.1", False),
        ("", False),
    ],
)
def test_only_one_minor_version_is_accepted(version: str, accepted: bool) -> None:
    assert KUSTOMIZE_TOOL.accepts(version) is accepted


def test_versions_are_parsed_as_programs_print_them() -> None:
    printed = ["v5.8.1\n", "{Version:kustomize/v4.5.7 GitCommit:56d82a8", "0.7.0", "development", "(devel)"]
    assert [parse_tool_version(text) for text in printed] == ["5.8.1", "4.5.7", "0.7.0", None, None]


def test_pins_are_complete() -> None:
    platforms = {("linux", "amd64"), ("linux", "arm64"), ("darwin", "amd64"), ("darwin", "arm64")}
    for tool in PINNED_TOOLS:
        assert tool.archives.keys() == platforms
        assert tool.accepts(tool.version)
        sums = {archive.sha256 for archive in tool.archives.values()}
        assert len(sums) == 4
        for (system, processor), archive in tool.archives.items():
            assert archive.url.startswith("https://github.com/")
            assert tool.version in archive.url
            assert f"{system}-{processor}" in archive.url or f"{system}_{processor}" in archive.url
            assert len(archive.sha256) == 64
            assert int(archive.sha256, 16)
