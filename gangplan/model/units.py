"""Units of amounts as people and as Kubernetes write them, and the error for texts that are not amounts."""

from __future__ import annotations

from collections.abc import Sequence

# What people write as a unit, and Kubernetes' suffixes for it. A gigabyte can be meant in two ways that
# differ by 7 % and more, a gibibyte only in one.
_SPELLINGS = {
    "k kb": ("Ki", "k"),
    "m mb meg megs megabyte megabytes": ("Mi", "M"),
    "g gb gig gigs gigabyte gigabytes": ("Gi", "G"),
    "t tb terabyte terabytes": ("Ti", "T"),
    "p pb petabyte petabytes": ("Pi", "P"),
    "e eb exabyte exabytes": ("Ei", "E"),
    "kib ki kibibyte kibibytes": ("Ki",),
    "mib mi mebibyte mebibytes": ("Mi",),
    "gib gi gibibyte gibibytes": ("Gi",),
    "tib ti tebibyte tebibytes": ("Ti",),
    "pib pi": ("Pi",),
    "eib ei": ("Ei",),
    "milli millicore millicores mcpu": ("m",),
    "b byte bytes core cores cpu cpus vcpu vcpus gpu gpus": ("",),
}
UNIT_SUFFIXES = tuple(dict.fromkeys(suffix for means in _SPELLINGS.values() for suffix in means))
UNIT_SPELLINGS = {unit: means for units, means in _SPELLINGS.items() for unit in units.split()}

# An amount that was probably meant, and the same in other words or "".
AmountProposal = tuple[str, str]


class AmountError(ValueError):
    """A text is not an amount. `help` says what to write; `proposed` are the amounts that were probably
    meant, in words; `meant` is the only proposal, if it needs no other words."""

    def __init__(self, message: str, help: str = "", proposals: Sequence[AmountProposal] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.proposed = " or ".join(f"{amount} ({also})" if also else amount for amount, also in proposals)
        self.meant = proposals[0][0] if len(proposals) == 1 and not proposals[0][1] else ""
        self.help = f"Did you mean {self.proposed}?" if proposals else help
