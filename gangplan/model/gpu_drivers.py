"""Which GPU drivers can run an image, by the CUDA or ROCm version that it was built with.

Minor versions of CUDA: NVIDIA's CUDA Toolkit Release Notes 13.2 Update 2, "CUDA Toolkit and Corresponding
Driver Versions" (Linux). Major versions: "CUDA Compatibility", Minor Version Compatibility; the patch levels
of 11 and 12 are those of the release notes of 11.8 and 12.9. ROCm: the "User and AMD GPU driver support
matrix" of the ROCm 7.0 documentation, the release notes of 7.2.2, and the compatibility matrix of the driver
30.30.
"""

from __future__ import annotations

import re
from typing import Literal

from gangplan.records import dataclass

# The driver that was released with each minor version, at its first release.
CUDA_DRIVERS = {
    "11.0": "450.51.05",
    "11.1": "455.23",
    "11.2": "460.27.03",
    "11.3": "465.19.01",
    "11.4": "470.42.01",
    "11.5": "495.29.05",
    "11.6": "510.39.01",
    "11.7": "515.43.04",
    "11.8": "520.61.05",
    "12.0": "525.60.13",
    "12.1": "530.30.02",
    "12.2": "535.54.03",
    "12.3": "545.23.06",
    "12.4": "550.54.14",
    "12.5": "555.42.02",
    "12.6": "560.28.03",
    "12.8": "570.26",
    "12.9": "575.51.03",
    "13.0": "580.65.06",
    "13.1": "590.44.01",
    "13.2": "595.45.04",
}
# The oldest driver that runs any minor version of a major one, without the features that its own driver
# added.
CUDA_LEAST = {11: "450.80.02", 12: "525.60.13", 13: "580.65.06"}
# The ROCm versions that each line of the AMD GPU driver runs. Until 6.4 its lines were those of ROCm, since
# then they count from 30.10.
ROCM_OF_DRIVER = {
    "5.3": ("5.1", "5.2", "5.3", "5.4", "5.5"),
    "5.4": ("5.2", "5.3", "5.4", "5.5", "5.6"),
    "5.5": ("5.3", "5.4", "5.5", "5.6", "5.7"),
    "5.6": ("5.4", "5.5", "5.6", "5.7", "6.0"),
    "5.7": ("5.5", "5.6", "5.7", "6.0", "6.1"),
    "6.0": ("5.6", "5.7", "6.0", "6.1", "6.2"),
    "6.1": ("5.7", "6.0", "6.1", "6.2", "6.3", "6.4"),
    "6.2": ("6.0", "6.1", "6.2", "6.3", "6.4", "7.0"),
    "6.3": ("6.1", "6.2", "6.3", "6.4", "7.0"),
    "6.4": ("6.1", "6.2", "6.3", "6.4", "7.0"),
    "30.10": ("6.2", "6.3", "6.4", "7.0", "7.2"),
    "30.30": ("6.3", "6.4", "7.0", "7.1", "7.2"),
}
_LINE = re.compile(r"(\d+)\.(\d+)(?:\.|$)")

# fits; runs with the features of an older CUDA; runs with libraries in the image; too old; unknown.
Outcome = Literal["fits", "minor", "forward", "refused", "unknown"]


@dataclass(frozen=True, slots=True)
class DriverVerdict:
    """Whether a driver can run an image; `needs` says, in words, what would do."""

    outcome: Outcome
    needs: str = ""


def judge_cuda_driver(cuda: str, driver: str, has_compat: bool = False) -> DriverVerdict:
    """Return whether an NVIDIA driver runs an image with a CUDA version.

    `has_compat`: the image contains cuda-compat. A version that NVIDIA's tables do not list is unknown,
    because gangplan does not guess.
    """
    line = parse_major_minor(cuda)
    if line is None:
        return DriverVerdict("unknown")
    major = int(line.partition(".")[0])
    least, own = CUDA_LEAST.get(major), CUDA_DRIVERS.get(line)
    if least is None:
        return DriverVerdict("unknown")
    if _parse_driver_version(driver) < _parse_driver_version(least):
        needs = f"CUDA {line} needs driver {least} or later"
        return DriverVerdict("forward" if has_compat else "refused", needs)
    if own is not None and _parse_driver_version(driver) < _parse_driver_version(own):
        return DriverVerdict("minor", f"CUDA {line} came with driver {own}")
    return DriverVerdict("fits" if own is not None else "unknown")


def judge_rocm_driver(rocm: str, driver: str) -> DriverVerdict:
    """Return whether an AMD GPU driver runs an image with a ROCm version, by AMD's table of tested pairs."""
    line, driver_line = parse_major_minor(rocm), parse_major_minor(driver)
    runs = ROCM_OF_DRIVER.get(driver_line or "")
    if line is None or runs is None:
        return DriverVerdict("unknown")
    if line in runs:
        return DriverVerdict("fits")
    return DriverVerdict("refused", f"driver {driver_line} is supported with ROCm {runs[0]} to {runs[-1]}")


def parse_major_minor(version: str) -> str | None:
    """Return the major and minor part of a version such as 12.8.1; None if the text is not a version."""
    match = _LINE.match(version)
    return f"{match[1]}.{match[2]}" if match else None


def _parse_driver_version(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
