"""One file of a template, as it was read."""

from __future__ import annotations

from gangplan.records import dataclass
from gangplan.source import Document
from gangplan.spec.job_template import JobTemplate


@dataclass(frozen=True, slots=True)
class TemplateFile:
    """One template: its file, its team ("" for the platform), and its content.

    `template` is None for a file that cannot be used; the workspace reports why.
    """

    file: str
    team: str
    name: str
    version: int
    template: JobTemplate | None
    document: Document | None
    digest: str

    @property
    def label(self) -> str:
        """The name with the version: `horovod-large@2`."""
        return f"{self.name}@{self.version}"
