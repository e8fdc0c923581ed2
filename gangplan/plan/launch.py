"""A launcher in a job's command, and edits of its options for a proposal."""

from __future__ import annotations

import re

from gangplan.model.job import Job
from gangplan.plan.launchers import FoundLauncher, ParsedOption
from gangplan.plan.problems import WordEdit
from gangplan.records import dataclass


@dataclass(frozen=True, slots=True)
class LauncherCall:
    """A launcher call in a job's command."""

    job: Job
    found: FoundLauncher

    @property
    def name(self) -> str:
        """The launcher's name as the user wrote it."""
        return self.found.start.name

    @property
    def sums(self) -> str:
        """The planned workers, slots and ranks as a text."""
        job = self.job
        return f"{job.workers} workers x {job.slots} slots = {job.ranks} ranks"

    def number(self, use: ParsedOption) -> str | None:
        """Return an option's value if it is known before the run; otherwise None."""
        text, script = use.value, self.found.script
        if script is None or use.value_at >= len(script.words) or not script.words[use.value_at].is_open:
            return text
        known = {variable.name: variable.value for variable in self.job.env if variable.is_plain}
        known |= {f"{one}_NNODES": str(self.job.workers) for one in ("PET", "PADDLE")}
        known |= {f"{one}_NPROC_PER_NODE": str(self.job.slots) for one in ("PET", "PADDLE")}
        for name in script.words[use.value_at].names:
            value = script.sets[name] if name in script.sets else known.get(name)
            if value is None and (alias := find_alias(name, script.text)):
                value = known.get(alias)
            if value is None:
                return None
            text = text.replace(f"${{{name}}}", value).replace(f"${name}", value)
        return None if "$" in text or "`" in text else text


def list_assigned_texts(name: str, script: str) -> list[str]:
    """Return what a script assigns to a variable, as it is written."""
    return re.findall(rf"(?<!\w){re.escape(name)}=([^\n;&]*)", script)


def find_alias(name: str, script: str) -> str:
    """Return the variable whose value a script gives to another one, once; empty if it is made in another way."""
    found = list_assigned_texts(name, script)
    whole = _VARIABLE.fullmatch(found[0].strip()) if len(found) == 1 else None
    return whole[2] if whole else ""


_VARIABLE = re.compile(r"""(["']?)\$\{?(\w+)\}?\1""")


def drop_option(use: ParsedOption) -> WordEdit:
    """Return an edit that removes an option."""
    return WordEdit(use.at, use.end)


def replace_launcher_option_value(use: ParsedOption, value: str) -> WordEdit:
    """Return an edit that gives an option another value."""
    if use.value_at == use.at:
        glue = "=" if use.spelled.startswith("--") or len(use.spelled) > 2 else ""
        return WordEdit(use.at, use.at + 1, (f"{use.spelled}{glue or '='}{value}",))
    return WordEdit(use.value_at, use.value_at + 1, (value,))
