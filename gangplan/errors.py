"""What can stop a command, and the exit code that each stop means.

Exceptions carry data and never print; `gangplan.cli` alone prints them.
"""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """The stable exit codes of every command."""

    CLEAN = 0
    FINDINGS = 1
    INPUT = 2
    ENVIRONMENT = 3
    INTERRUPTED = 130


class GangplanError(Exception):
    """A stop with a message for the user and, where one exists, a line that helps."""

    code: Exit = Exit.ENVIRONMENT

    def __init__(self, message: str, help: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.help = help


class UserError(GangplanError):
    """The input or the flags are wrong: exit 2."""

    code = Exit.INPUT


class ToolError(GangplanError):
    """Another program is missing, refused, crashed or timed out: exit 3."""


class InternalError(GangplanError):
    """A mistake of gangplan's own: exit 3, worth a report."""
