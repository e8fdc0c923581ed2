"""The one jinja environment. Every expression is printed as a safe YAML scalar; scripts have their own."""

from __future__ import annotations

import shlex
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, TemplateError, nodes
from jinja2.compiler import CodeGenerator, Frame
from markupsafe import Markup

from gangplan.errors import InternalError
from gangplan.objects import scalar

FOLDER = Path(__file__).parent / "templates"


def _printed(value: Any) -> str:
    """What `{{ value }}` prints: macro output as it is, anything else as one quoted scalar."""
    if type(value) is str:
        return scalar(value)
    if isinstance(value, Markup):
        return value
    canonical = getattr(value, "canonical", None)
    return scalar(canonical() if canonical else value)


class _Printing(CodeGenerator):
    """Prints what `_printed` returns without escaping it for HTML, which takes as long as all the rest."""

    def _output_child_pre(self, node: nodes.Expr, frame: Frame, finalize: Any) -> None:
        self.write(finalize.src)

    def _output_child_post(self, node: nodes.Expr, frame: Frame, finalize: Any) -> None:
        self.write(")")


class _YamlEnvironment(Environment):
    code_generator_class = _Printing


def _indent(block: Markup, width: int) -> Markup:
    """The lines of a macro's output, all but the first moved to the right."""
    if not isinstance(block, Markup):
        raise TypeError("indent is for the output of macros")
    return Markup(str.rstrip(block, "\n").replace("\n", "\n" + " " * width))


@cache
def _environment() -> Environment:
    environment = _YamlEnvironment(
        loader=FileSystemLoader(FOLDER),
        undefined=StrictUndefined,
        autoescape=True,  # makes macros return Markup, so that their output is not quoted twice
        finalize=_printed,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["indent"] = _indent  # five times faster than jinja's own on Markup
    return environment


@cache
def _script_environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
    )
    environment.finalize = lambda value: shlex.quote(str(value))
    return environment


def render_yaml(name: str, values: dict[str, Any]) -> str:
    """The text of a YAML template. Raises InternalError with the template's line on a mistake in it."""
    return _render(_environment(), name, values)


def render_script(name: str, values: dict[str, Any]) -> str:
    """The text of a shell template; every value is quoted for the shell."""
    return _render(_script_environment(), name, values)


def _render(environment: Environment, name: str, values: dict[str, Any]) -> str:
    try:
        return environment.get_template(name).render(values)
    except TemplateError as error:
        line = getattr(error, "lineno", None)
        place = f"templates/{name}" + (f":{line}" if line else "")
        raise InternalError(f"bug in {place}: {error}", "Please report it.") from error
