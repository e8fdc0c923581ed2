"""A launcher in a command of a job, and how its options are changed in a proposal."""

from __future__ import annotations

from gangplan.model.job import Job
from gangplan.plan.launchers import FoundLauncher, Use
from gangplan.plan.problems import Edit
from gangplan.records import dataclass


@dataclass(frozen=True, slots=True)
class Kept:
    """A launcher in a command of a job."""

    job: Job
    found: FoundLauncher

    @property
    def name(self) -> str:
        """What the user calls it."""
        return self.found.start.name

    @property
    def sums(self) -> str:
        """The plan in numbers."""
        job = self.job
        return f"{job.workers} workers x {job.slots} slots = {job.ranks} ranks"

    def number(self, use: Use) -> str | None:
        """An option's value as far as it is known before the run; None for one that is not."""
        text, script = use.value, self.found.script
        if script is None or use.value_at >= len(script.words) or not script.words[use.value_at].is_open:
            return text
        known = {variable.name: variable.value for variable in self.job.env if variable.is_plain}
        known |= {"PET_NNODES": str(self.job.workers), "PET_NPROC_PER_NODE": str(self.job.slots)}
        for name in script.words[use.value_at].names:
            value = script.sets[name] if name in script.sets else known.get(name)
            if value is None:
                return None
            text = text.replace(f"${{{name}}}", value).replace(f"${name}", value)
        return None if "$" in text or "`" in text else text


def drop(use: Use) -> Edit:
    """Take an option away."""
    return Edit(use.at, use.end)


def put(use: Use, value: str) -> Edit:
    """Give an option another value."""
    if use.value_at == use.at:
        glue = "=" if use.spelled.startswith("--") or len(use.spelled) > 2 else ""
        return Edit(use.at, use.at + 1, (f"{use.spelled}{glue or '='}{value}",))
    return Edit(use.value_at, use.value_at + 1, (value,))
