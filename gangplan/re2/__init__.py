"""RE2 regular expressions as Go's `regexp` reads them, for CEL and for kustomize's patch targets.

`compile_search(pattern)` searches as Go's package does, in time linear in the text.
"""

from __future__ import annotations

from gangplan.re2.escapes import PatternError
from gangplan.re2.search import MatchSpan, Search, UnknownScriptError, compile_search

__all__ = ["MatchSpan", "PatternError", "Search", "UnknownScriptError", "compile_search"]
