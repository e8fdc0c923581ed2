"""Specs for every family, and runs of them on hosts; tests are skipped, with the reason, without an MPI or
hosts."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import workspaces
from tests.reality import pods, running
from tests.reality.families import FAMILIES, Family, UnavailableError

ALL = list(FAMILIES)


def spec(family: Family, workers: int, *lines: str, command: str = "[python, train.py]") -> str:
    """Return a spec of the small workspace with a family's image, with `lines` added."""
    text = workspaces.SPEC.replace("image: openmpi", f"image: {family.image}")
    text = text.replace("workers: 4", f"workers: {workers}").replace("[python, train.py]", command)
    return text + family.extra + "".join(f"{line}\n" for line in lines)


def python(family: Family) -> tuple[dict[str, str], dict[str, Path]]:
    """Return a Python with mpi4py for an image: its programs, and what is bound into it."""
    mpi4py = importlib.util.find_spec("mpi4py")
    if mpi4py is None or mpi4py.origin is None:
        pytest.skip("no mpi4py next to this python")
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    text = "#!/bin/sh\nexport PYTHONHOME=/opt/python PYTHONPATH=/opt/site LD_LIBRARY_PATH=/opt/python/lib\n"
    text += f'export MPI4PY_LIBMPI=/usr/local/lib/{family.library}\nexec /opt/python/bin/{version} -B "$@"\n'
    binds = {"/opt/python": Path(sys.base_prefix), "/opt/site/mpi4py": Path(mpi4py.origin).parent}
    return {"python": text}, binds


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
    bodies: list[pods.Body] | None = None,
    with_python: Mapping[str, str] | None = None,
    name: str = "python",
) -> Iterator[running.Run]:
    """Yield the run of a spec (or of `bodies`) with its launcher started; skip where hosts or the MPI are
    unavailable.

    `program` is what each rank executes, under its `name`; `with_python` gives the files of a Python program
    instead.
    """
    made = pods.cluster(bodies or pods.objects(folder / "workspace", text, **(files or {})))
    if with_python is None:
        image = running.Image(family, {name: program}, prefix, bashrc)
    else:
        programs, binds = python(family)
        home = {f"{pods.HOME}/{name}": source for name, source in with_python.items()}
        image = running.Image(family, programs | home, prefix, bashrc, binds)
    try:
        with running.started(folder, made, image) as run:
            yield run
    except UnavailableError as error:
        pytest.skip(str(error))
