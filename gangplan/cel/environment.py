"""The interface of the engine: an environment compiles expressions, a program evaluates them.

```python
environment = Environment(minor=34, variables={"object": types.DYN})
program = environment.compile("object.spec.replicas > 1")   # CompileError: the API server would refuse it
program.type                                                # types.BOOL
program.evaluate({"object": body})                          # True; EvalError, BudgetError, UnknownError
program.measure({"object": body}, budget=1_000_000)         # (True, 4): the value and the API server's cost
```
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from gangplan.cel.checked import Checked
from gangplan.cel.declarations import FIRST_MINOR, LAST_MINOR
from gangplan.cel.program import CelProgram, build_cel_program
from gangplan.cel.types import Type

# Parentheses nested as deep as the API server allows (250) take nine frames each; Python's default is 1000.
_FRAMES = 4000


class Environment:
    """What expressions may use: the functions of Kubernetes 1.`minor` and these variables.

    `variables` maps names to static types; a name may have dots (`authorizer.requestResource`). Raises
    ValueError for a minor before 27 or after the last that gangplan knows.
    """

    __slots__ = ("minor", "variables")

    def __init__(self, *, minor: int, variables: Mapping[str, Type]) -> None:
        if not FIRST_MINOR <= minor <= LAST_MINOR:
            known = f"1.{FIRST_MINOR} to 1.{LAST_MINOR}"
            raise ValueError(f"Kubernetes 1.{minor} is not one whose CEL gangplan knows: {known}")
        self.minor = minor
        self.variables = dict(variables)

    def check(self, text: str) -> Checked:
        """Return the checked tree of an expression. Raises `CompileError` if the API server would
        refuse it."""
        # Imported here, because a command whose programs are all cached (kept.py) parses nothing.
        from gangplan.cel.checker import check_cel_types
        from gangplan.cel.parser import parse_cel_expression
        from gangplan.cel.validators import check_cel_constants

        with _raise_recursion_limit():
            checked = check_cel_types(
                parse_cel_expression(text, self.minor), text, self.variables, self.minor
            )
            check_cel_constants(checked, text, self.minor)
            return checked

    def compile(self, text: str) -> CelProgram:
        """Compile an expression to a program. Raises `CompileError` if the API server would refuse it."""
        checked = self.check(text)
        with _raise_recursion_limit():
            return build_cel_program(text, checked)


@contextmanager
def _raise_recursion_limit() -> Iterator[None]:
    """Allow enough frames for the deepest tree."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _FRAMES))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
