"""Units of amounts as people write them, and as Kubernetes does."""

from __future__ import annotations

# What people write for a unit, and what Kubernetes has for it. A gigabyte may be meant in two ways that
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
UNITS = {unit: means for units, means in _SPELLINGS.items() for unit in units.split()}
