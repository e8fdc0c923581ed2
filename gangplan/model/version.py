"""A version number, compared by its parts."""

from __future__ import annotations

from gangplan.records import dataclass


@dataclass(frozen=True, slots=True, order=True)
class ToolVersion:
    """Major, minor and patch; the patch is 0 if it was not given."""

    major: int
    minor: int
    patch: int = 0

    @property
    def line(self) -> str:
        """The minor line by which API facts are looked up, such as "2.3"."""
        return f"{self.major}.{self.minor}"

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"

    def at_least(self, major: int, minor: int) -> bool:
        """Return whether this version belongs to the given minor line or a later one."""
        return (self.major, self.minor) >= (major, minor)


# The version of a component that a cluster does not have.
NOT_INSTALLED = ToolVersion(0, 0, 0)


def parse_version(text: str) -> ToolVersion:
    """Parse a version of two or three numbers, with an optional leading v. Raises ValueError."""
    numbers = [int(part) for part in text.removeprefix("v").split(".")]
    if len(numbers) not in (2, 3):
        raise ValueError(f"'{text}' is not a version")
    return ToolVersion(*numbers)
