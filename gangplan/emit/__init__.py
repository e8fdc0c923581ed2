"""Texts in, a rendered tree out: staged, compared, swapped in whole, never half written."""

from gangplan.emit.header import MARK, header_lines, source_of
from gangplan.emit.tree import Change, Outcome, Stage

__all__ = ["MARK", "Change", "Outcome", "Stage", "header_lines", "source_of"]
