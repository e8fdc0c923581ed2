"""Versions that the Go linker wrote, read without starting the program."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gangplan.tools import buildinfo
from gangplan.tools.kubeconform import Kubeconform
from gangplan.tools.kustomize import KustomizeEngine
from gangplan.tools.pins import KUBECONFORM_TOOL, KUSTOMIZE_TOOL
from tests.tools.programs import go_binary

MAIN = "sigs.k8s.io/kustomize/kustomize/v5"


def read(content: bytes, folder: Path) -> buildinfo.BuildInfo | None:
    """Write and read a file."""
    file = folder / "program"
    file.write_bytes(content)
    return buildinfo.read_build_info(file)


def test_package_and_versions_are_read(tmp_path: Path) -> None:
    more = (
        "dep\tsigs.k8s.io/yaml\tv1.6.0\th1:x=",
        "dep\tk8s.io/api\tv0.1.0",
        "=>\tk8s.io/api\tv0.2.0\th1:y=",
    )
    info = read(go_binary(MAIN, MAIN, "v5.8.1", *more), tmp_path)
    assert info == buildinfo.BuildInfo(
        MAIN, MAIN, {MAIN: "v5.8.1", "sigs.k8s.io/yaml": "v1.6.0", "k8s.io/api": "v0.2.0"}
    )


def test_an_accidental_mark_is_skipped(tmp_path: Path) -> None:
    mark = b"\xff Go buildinf:"
    aligned, unaligned = mark.ljust(32, b"\x00"), (b"x" + mark).ljust(32, b"\x00")
    info = read(aligned + unaligned + go_binary(MAIN, MAIN, "v5.8.1"), tmp_path)
    assert info is not None
    assert info.versions[MAIN] == "v5.8.1"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"#!/bin/sh\nexit 0\n",
        b"\x7fELF" + bytes(100),
        b"\xff Go buildinf:",
        go_binary(MAIN, MAIN, "v5.8.1")[:90],
    ],
    ids=["empty", "script", "no-mark", "only-mark", "cut"],
)
def test_other_files_have_no_build_information(content: bytes, tmp_path: Path) -> None:
    assert read(content, tmp_path) is None


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=200,
    deadline=None,
)
@given(tail=st.binary(max_size=200), at=st.integers(0, 300), byte=st.integers(0, 255))
def test_damage_never_raises(tail: bytes, at: int, byte: int, tmp_path: Path) -> None:
    content = bytearray(go_binary(MAIN, MAIN, "v5.8.1") + tail)
    content[at % len(content)] = byte
    read(bytes(content), tmp_path)
    read(b"\xff Go buildinf:" + tail, tmp_path)


@pytest.mark.real_tool("kustomize")
def test_the_real_kustomize_has_its_package(real_kustomize: KustomizeEngine) -> None:
    info = buildinfo.read_build_info(real_kustomize.path)
    assert info is not None
    assert info.package == KUSTOMIZE_TOOL.package


@pytest.mark.real_tool("kubeconform")
def test_the_real_kubeconform_has_its_package(real_kubeconform: Kubeconform) -> None:
    info = buildinfo.read_build_info(real_kubeconform.found.path)
    assert info is not None
    assert info.package == KUBECONFORM_TOOL.package
