"""The wheel contains what is in the repository."""

from __future__ import annotations

import os
import shutil
import subprocess
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests import wheels
from tests.wheels import LINKED
from tests.workspaces import REPOSITORY

SETTINGS = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]


def folder_of(package: str) -> Path:
    """Return the folder of a package of the wheel."""
    outer = ".".join(package.split(".")[:2])
    base = SETTINGS["package-dir"].get(outer)
    inner = package.split(".")[2:] if base else package.split(".")[1:]
    return REPOSITORY.joinpath(base or "gangplan", *inner)


def packages_on_disk() -> set[str]:
    """Return the import names of all folders with an __init__.py."""
    found = set()
    for top in ("gangplan", *LINKED):
        for file in (REPOSITORY / top).rglob("__init__.py"):
            inside = file.parent.relative_to(REPOSITORY)
            found.add(".".join(inside.parts if top == "gangplan" else ("gangplan", *inside.parts)))
    return found


def test_every_package_is_listed() -> None:
    assert packages_on_disk() == set(SETTINGS["packages"])


def test_every_module_is_in_a_package() -> None:
    for top in ("gangplan", *LINKED):
        for file in (REPOSITORY / top).rglob("*.py"):
            if "schemas" not in file.parts:
                assert (file.parent / "__init__.py").is_file(), file


@pytest.mark.parametrize("name", LINKED)
def test_links_lead_to_top_level_folders(name: str) -> None:
    link = REPOSITORY / "gangplan" / name
    if not link.is_symlink():
        pytest.skip("this checkout has no symbolic links")
    assert link.readlink() == Path("..", name)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Build the wheel, and return the names of all its files."""
    return set(zipfile.ZipFile(wheels.build(tmp_path_factory.mktemp("wheel"))).namelist())


def test_the_wheel_contains_every_module_and_data_file(wheel: set[str]) -> None:
    for package in SETTINGS["packages"]:
        inside = package.replace(".", "/")
        for file in folder_of(package).glob("*.py"):
            assert f"{inside}/{file.name}" in wheel
    for file in (REPOSITORY / "templates").rglob("*.j2"):
        assert f"gangplan/templates/{file.relative_to(REPOSITORY / 'templates').as_posix()}" in wheel
    for file in (REPOSITORY / "validate/schemas").rglob("*.json"):
        assert (
            f"gangplan/validate/schemas/{file.relative_to(REPOSITORY / 'validate/schemas').as_posix()}"
            in wheel
        )
    assert "gangplan/py.typed" in wheel


def test_the_wheel_contains_nothing_else(wheel: set[str]) -> None:
    for name in wheel:
        top = name.split("/")[0]
        assert top == "gangplan" or top.endswith(".dist-info"), name
        assert (
            name.endswith((".py", ".j2", ".sh", ".json", ".yaml", ".txt", "py.typed"))
            or ".dist-info/" in name
        ), name
    entries = [name for name in wheel if name.endswith("entry_points.txt")]
    assert len(entries) == 1


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
def test_make_unsets_pythondontwritebytecode() -> None:
    """Where a shell sets PYTHONDONTWRITEBYTECODE, every command would take three times as long."""
    shown = subprocess.run(
        ["make", "--silent", "--eval=shown: ; @echo [$$PYTHONDONTWRITEBYTECODE]", "shown"],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout == "[]\n"
