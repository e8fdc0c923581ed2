"""Names by which a run is started: a value of the user's own, in env or as an option, would break the launch."""

from __future__ import annotations

from gangplan.resolve.secrets import RESERVED_ENV

# Beginnings of names that launchers read their hosts and their way to them from.
_LAUNCH = ("OMPI_MCA_", "PRTE_MCA_", "PMIX_MCA_", "HYDRA_", "I_MPI_HYDRA_", "PET_")
_NEEDED = frozenset({"PATH", "HOME", "LD_LIBRARY_PATH", "I_MPI_PERHOST"})


def is_reserved(name: str) -> bool:
    """Whether a variable belongs to the launch."""
    return name in RESERVED_ENV


def is_needed(name: str) -> bool:
    """Whether a launcher cannot do without a variable, so that taking it away breaks the start."""
    return name in _NEEDED or name.startswith(_LAUNCH)


def variable_of(parameter: str) -> str:
    """The reserved variable that an MCA parameter is another way to set; an empty text for other parameters."""
    for beginning in ("OMPI_MCA_", "PRTE_MCA_"):
        if beginning + parameter in RESERVED_ENV:
            return beginning + parameter
    return ""
