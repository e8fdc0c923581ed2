"""Specs for every family, and runs of them on hosts or a skip that names what is missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import workspaces
from tests.reality import pods, running
from tests.reality.families import FAMILIES, Family, UnavailableError

ALL = list(FAMILIES)


def spec(family: Family, workers: int, *lines: str, command: str = "[python, train.py]") -> str:
    """A spec of the small workspace in a family's image; `lines` are added."""
    text = workspaces.SPEC.replace("image: openmpi", f"image: {family.image}")
    text = text.replace("workers: 4", f"workers: {workers}").replace("[python, train.py]", command)
    return text + family.extra + "".join(f"{line}\n" for line in lines)


@contextmanager
def running_spec(
    folder: Path,
    family: Family,
    text: str,
    *,
    program: str = running.PROGRAM,
    files: Mapping[str, str] | None = None,
    prefix: str = "/usr/local",
    bashrc: str = "",
) -> Iterator[running.Run]:
    """The run of a spec, its launcher started. Skips where hosts or the family cannot be had."""
    made = pods.cluster(pods.objects(folder / "workspace", text, **(files or {})))
    image = running.Image(family, {"python": program}, prefix, bashrc)
    try:
        with running.started(folder, made, image) as run:
            yield run
    except UnavailableError as error:
        pytest.skip(str(error))
