"""Sources that cannot become specs, with their reasons."""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.findings import Finding


class RefusedSourceError(ValueError):
    """A source that is refused; `findings` are the reasons, each at its place."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        super().__init__(findings[0].message if findings else "it cannot be imported")
        self.findings = tuple(findings)
