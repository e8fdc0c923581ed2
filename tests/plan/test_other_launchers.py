"""Launchers that no run can use: the help gives a command only if it does what the launcher's words say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plan.test_command import planned

LOST = "Write only the program; gangplan starts it on every rank. What %s sets belongs in fields of the spec, such as env, workdir or image."
SEVERAL = "gangplan starts one program on every rank; for several, write an mpirun with ':' between them."
WRITE = "Write only the program; gangplan starts it on every rank. Write command: %s."
OPENFOAM = "Write mpirun -np 8, the program and its option -parallel."
# The command and the help.
CASES = {
    "[srun, '--export=ALL,FOO=1', ./a]": LOST % "--export",
    "[srun, --export=ALL, -n, 8, --cpu-bind=cores, -o, log, ./a]": WRITE % "[./a]",
    "[srun, -D, /data, ./a]": LOST % "-D",
    "[srun, --chdir=/data, -n, 8, ./a]": LOST % "--chdir",
    "[srun, --container-image=a.sqsh, --container-mounts=/d:/d, ./a]": LOST % "--container-image",
    "[srun, --multi-prog, conf]": SEVERAL,
    "[srun, -n, 2, ./a, ':', -n, 6, ./b]": SEVERAL,
    "[mpirun_rsh, -np, 8, -hostfile, h, FOO=1, ./a]": LOST % "FOO",
    "[mpirun_rsh, -np, 8, -hostfile, h, ./a, B=2]": WRITE % "[./a, B=2]",
    "[aprun, -e, FOO=1, -n, 8, ./a]": LOST % "-e",
    "[jsrun, -E, FOO=1, -n, 8, ./a]": LOST % "-E",
    "[flux, run, '--env=FOO=1', ./a]": LOST % "--env",
    "[poe, ./a, -procs, 8]": WRITE.partition(" Write command")[0],
    "[likwid-mpirun, -np, 8, -g, MEM, ./a]": WRITE.partition(" Write command")[0],
    "[srun, -n, 4, namd2, /data/in.namd]": WRITE % "[namd2, /data/in.namd]",
    "[srun, --mpi=pmix, Rscript, ./a.R]": WRITE % "[Rscript, ./a.R]",
    "[srun, --new-option, value, ./a]": WRITE % "[./a]",
    "[srun, --new-option, namd2, /data/in.namd]": WRITE.partition(" Write command")[0],
    "[charmrun, +p32, namd2, /data/in.namd]": WRITE % "[namd2, /data/in.namd]",
    "[charmrun, ++ppn, 8, +p32, namd2, /data/in.namd]": WRITE.partition(" Write command")[0],
    "[bash, -c, 'aprun -n 4 namd2 /data/in.namd > /data/out']": WRITE
    % "[bash, -c, 'namd2 /data/in.namd > /data/out']",
    "[pbsdsh, ./a]": WRITE % "[./a]",
    "[foamJob, -parallel, -wait, simpleFoam]": OPENFOAM,
    "[bash, -c, '. ./RunFunctions; runParallel simpleFoam']": OPENFOAM,
}


@pytest.mark.parametrize("command", CASES)
def test_the_help_for_another_launcher_drops_nothing_that_the_ranks_need(command: str, root: Path) -> None:
    found = [one for one in planned(root, "openmpi", command).findings if one.is_error]
    assert [(str(one.rule), one.help) for one in found] == [("command-launcher", CASES[command])]
