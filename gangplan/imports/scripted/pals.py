"""Recognise mpiexec of HPE Cray PALS 1.3 (mpiexec(1)).

PBS starts jobs with it on Cray EX machines; Hydra has a program of the same name.
"""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.plan.launchers import program_name_of

# Its options, and what they mean for a step of Slurm; those of the second table have no value. Hydra shares
# some of them, so at least one of the third must be present.
_PALS = {
    **dict.fromkeys(("n", "np"), "ntasks"),
    "ppn": "ntasks-per-node",
    **dict.fromkeys(("d", "depth"), "cpus-per-task"),
    "env": "export",
    **dict.fromkeys(("cpu-bind", "mem-bind", "gpu-bind", "pmi", "rlimits", "envlist", "umask"), "cpu-bind"),
    **dict.fromkeys(("hosts", "hostfile", "hostlist", "exclude-hosts", "f"), "nodelist"),
    **dict.fromkeys(("wdir", "w"), "chdir"),
}
_PALS_FLAGS = frozenset(
    str.split(
        "l label line-buffer envall genvall envnone vni no-vni no-transfer transfer no-abort-on-failure"
    )
)
_OF_PALS = frozenset(str.split("ppn depth cpu-bind mem-bind gpu-bind vni no-vni no-transfer line-buffer"))


def is_pals_launch_in_batch_script(texts: Sequence[str], at: int) -> bool:
    """Return whether all options of an mpiexec are PALS's, and at least one is not Hydra's."""
    if program_name_of(texts[at]) != "mpiexec":
        return False
    index, named = at + 1, set[str]()
    while index < len(texts) and texts[index].startswith("-") and len(texts[index]) > 1:
        name = texts[index].lstrip("-").partition("=")[0]
        if name not in _PALS and name not in _PALS_FLAGS:
            return False
        named.add(name)
        index = read_pals_option_as_slurm_option(texts, index)[0]
    return bool(named & _OF_PALS)


def read_pals_option_as_slurm_option(texts: Sequence[str], index: int) -> tuple[int, str, str]:
    """Return the end, name and value of an option, by the name that Slurm has for it."""
    name, equals, value = texts[index].lstrip("-").partition("=")
    if name in _PALS_FLAGS or equals or index + 1 >= len(texts):
        return index + 1, _PALS.get(name, "cpu-bind"), value
    return index + 2, _PALS.get(name, "cpu-bind"), texts[index + 1]
