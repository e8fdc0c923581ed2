"""A run does not bind its ranks, by variables of its MPI; these must not switch off the pinning that a user asks for."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request, Result
from gangplan.rules.model import Severity
from tests import workspaces

POLICIES = {
    "openmpi4": "OMPI_MCA_hwloc_base_binding_policy",
    "openmpi": "PRTE_MCA_hwloc_default_binding_policy",
    "intel": "I_MPI_PIN",
}
INTEL = "mpi: {licenseAcknowledged: true%s}"
DOMAIN = "-genv, I_MPI_PIN_DOMAIN, omp"
PE = "--map-by, 'slot:PE=2'"
# Image, command, and further lines: whether the ranks are pinned by the user.
CASES = {
    "no option": ("openmpi", "[mpirun, -np, 8, p]", "", False),
    "PE of an own mpirun": ("openmpi", f"[mpirun, {PE}, p]", "", True),
    "PE on Open MPI 4": ("openmpi4", f"[mpirun, {PE}, p]", "", True),
    "PE in a script": ("openmpi", "[bash, -c, 'cd /tmp; mpirun --map-by ppr:2:node:pe=2 p']", "", True),
    "PE in mpi.flags": ("openmpi4", "[p]", f"mpi: {{flags: [{PE}]}}", True),
    "PE by a parameter": ("openmpi4", "[mpirun, --mca, rmaps_base_mapping_policy, 'slot:PE=2', p]", "", True),
    "another parameter": ("openmpi4", "[mpirun, --mca, rmaps_base_mapping_policy, slot, p]", "", False),
    "a list of cores": ("openmpi", "[mpirun, --map-by, 'pe-list=0,1:ordered', p]", "", True),
    "an option that wins over the variable": ("openmpi", "[mpirun, --bind-to, core, p]", "", False),
    "no option of Intel MPI": ("intel", "[p]", INTEL % "", False),
    "a domain in env": ("intel", "[p]", INTEL % "" + "\nenv: {I_MPI_PIN_DOMAIN: omp}", True),
    "a list in env": ("intel", "[p]", INTEL % "" + "\nenv: {I_MPI_PIN_PROCESSOR_LIST: '0,1'}", True),
    "a domain in mpi.flags": ("intel", "[p]", INTEL % f", flags: [{DOMAIN}]", True),
    "a domain of an own mpirun": ("intel", f"[mpirun, {DOMAIN}, p]", INTEL % "", True),
    "a domain before it": ("intel", "[env, I_MPI_PIN_DOMAIN=omp, mpirun, p]", INTEL % "", True),
    "a domain in its script": (
        "intel", "[bash, -c, 'export I_MPI_PIN_DOMAIN=omp; mpirun p']", INTEL % "", True
    ),
    "a domain of the ranks": ("intel", "[bash, -c, 'export I_MPI_PIN_DOMAIN=omp; p']", INTEL % "", False),
    "a binding option": ("intel", "[mpirun, -bind-to, core, p]", INTEL % "", True),
    "the option not to bind": ("intel", "[mpirun, -bind-to, none, p]", INTEL % "", False),
}  # fmt: skip


def planned(root: Path, image: str, command: str, more: str) -> Result:
    spec = workspaces.SPEC.replace("image: openmpi", f"image: {image}")
    workspaces.write(
        root, {"specs/nlp/filings.yaml": spec.replace("[python, train.py]", command) + more + "\n"}
    )
    return preview_render(Request(root, engine="serial"))


@pytest.mark.parametrize("case", CASES)
def test_the_policy_not_to_bind_is_left_out_where_the_user_pins(case: str, root: Path) -> None:
    image, command, more, is_pinned = CASES[case]
    result = planned(root, image, command, more)
    assert [one.message for one in result.findings if one.severity is Severity.ERROR] == []
    names = {one.name for one in result.runs[0].unit.launch.launcher_env}
    assert (POLICIES[image] not in names) is is_pinned


def test_launches_without_pinning_still_bind_nothing(root: Path) -> None:
    script = "mpirun p && mpirun --map-by slot:PE=2 q && mpirun --bind-to core r"
    result = planned(root, "openmpi", f"[bash, -c, '{script}']", "")
    text = result.runs[0].unit.launch.argv[-1].replace(" -x PATH -x LD_LIBRARY_PATH -x OMP_NUM_THREADS", "")
    assert text == script.replace("mpirun p", "mpirun --bind-to none p")
