"""The one jinja environment. Every expression is printed as a safe YAML scalar; scripts have their own."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shlex
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

import jinja2
from jinja2 import BytecodeCache, Environment, FileSystemLoader, StrictUndefined, TemplateError, nodes
from jinja2.bccache import Bucket
from jinja2.compiler import CodeGenerator, Frame
from markupsafe import Markup

from gangplan.errors import InternalError
from gangplan.objects import scalar

FOLDER = Path(__file__).parent / "templates"


def printed(value: Any) -> str:
    """What `{{ value }}` prints: macro output as it is, anything else as one quoted scalar."""
    if type(value) is str:
        return scalar(value)
    if isinstance(value, Markup):
        return value
    canonical = getattr(value, "canonical", None)
    return scalar(canonical() if canonical else value)


class _Printing(CodeGenerator):
    """Prints what `finalize` returns without escaping it for HTML, which takes as long as all the rest."""

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


class _Compiled(BytecodeCache):
    """Compiled templates beside Python's own: where and when Python keeps its compiled modules.

    Compiling takes 3 ms a template, a tenth of a short command. What cannot be read or written is compiled
    again, in silence, as Python does.
    """

    def __init__(self, environment: str) -> None:
        # Whatever compiled them: this file's code generator and filters, and jinja's compiler.
        self._makers = f"{environment} {jinja2.__version__} {Path(__file__).read_text(encoding='utf-8')}"
        self._folder = Path(cache_from_source(str(FOLDER / "template.py"))).parent

    def get_cache_key(self, name: str, filename: str | Path | None = None) -> str:
        """Return the name of the file that keeps a template."""
        digest = hashlib.sha256(f"{sys.version} {self._makers} {name}".encode()).hexdigest()
        return f"{name.replace('/', '.')}.{digest[:16]}.{sys.implementation.cache_tag}"

    def get_source_checksum(self, source: str) -> str:
        """Return what a template's text is told by; jinja's own SHA-1 is refused by a Python in FIPS mode."""
        return hashlib.sha256(source.encode()).hexdigest()

    def load_bytecode(self, bucket: Bucket) -> None:
        """Load a template where it was kept."""
        try:
            bucket.bytecode_from_string((self._folder / bucket.key).read_bytes())
        except Exception:  # noqa: BLE001  a damaged file breaks pickle and marshal in many ways
            bucket.reset()

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep a template, all of it or nothing."""
        if sys.dont_write_bytecode:
            return
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=self._folder, delete=False) as file:
                bucket.write_bytecode(file)
            os.replace(file.name, self._folder / bucket.key)


@cache
def _environment() -> Environment:
    return yaml_environment(printed)


def yaml_environment(finalize: Callable[[Any], str]) -> Environment:
    """The environment of YAML templates; `finalize` says what a value prints: a constant as `printed`."""
    environment = _YamlEnvironment(
        loader=FileSystemLoader(FOLDER),
        bytecode_cache=_Compiled("yaml"),
        undefined=StrictUndefined,
        autoescape=True,  # makes macros return Markup, so that their output is not quoted twice
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
    )
    environment.filters["indent"] = _indent  # five times faster than jinja's own on Markup
    return environment


@cache
def _script_environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        bytecode_cache=_Compiled("script"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
        auto_reload=False,
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
