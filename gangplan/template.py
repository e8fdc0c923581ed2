"""The jinja environments: one for YAML, which prints every expression as a safe scalar, one for scripts."""

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
from gangplan.objects import format_scalar

TEMPLATES_FOLDER = Path(__file__).parent / "templates"


def format_template_expression(value: Any) -> str:
    """Return what `{{ value }}` prints: the output of a macro as it is, anything else as one safe scalar."""
    if type(value) is str:
        return format_scalar(value)
    if isinstance(value, Markup):
        return value
    canonical = getattr(value, "canonical", None)
    return format_scalar(canonical() if canonical else value)


class _Printing(CodeGenerator):
    """A code generator that prints the result of `finalize` without HTML escaping, which doubles the time."""

    def _output_child_pre(self, node: nodes.Expr, frame: Frame, finalize: Any) -> None:
        self.write(finalize.src)

    def _output_child_post(self, node: nodes.Expr, frame: Frame, finalize: Any) -> None:
        self.write(")")


class _YamlEnvironment(Environment):
    code_generator_class = _Printing


def _indent_macro_output(block: Markup, width: int) -> Markup:
    """Indent all lines of a macro's output but the first. Raises TypeError for anything else."""
    if not isinstance(block, Markup):
        raise TypeError("indent is for the output of macros")
    return Markup(str.rstrip(block, "\n").replace("\n", "\n" + " " * width))


class _Compiled(BytecodeCache):
    """A cache of compiled templates, where and when Python caches its compiled modules.

    Compiling takes 3 ms per template, a tenth of a short command. What cannot be read or written is silently
    compiled again, as Python does.
    """

    def __init__(self, environment: str) -> None:
        # What the compiled code depends on: this file's code generator and filters, and jinja's compiler.
        self._makers = f"{environment} {jinja2.__version__} {Path(__file__).read_text(encoding='utf-8')}"
        self._folder = Path(cache_from_source(str(TEMPLATES_FOLDER / "template.py"))).parent

    def get_cache_key(self, name: str, filename: str | Path | None = None) -> str:
        """Return the name of the cache file of a template."""
        digest = hashlib.sha256(f"{sys.version} {self._makers} {name}".encode()).hexdigest()
        return f"{name.replace('/', '.')}.{digest[:16]}.{sys.implementation.cache_tag}"

    def get_source_checksum(self, source: str) -> str:
        """Return the digest of a template's text; Python in FIPS mode refuses SHA-1, which jinja uses."""
        return hashlib.sha256(source.encode()).hexdigest()

    def load_bytecode(self, bucket: Bucket) -> None:
        """Load a template if it is in the cache."""
        try:
            bucket.bytecode_from_string((self._folder / bucket.key).read_bytes())
        except Exception:  # noqa: BLE001  a damaged file breaks pickle and marshal in many ways
            bucket.reset()

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Write a template to the cache atomically, or not at all."""
        if sys.dont_write_bytecode:
            return
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=self._folder, delete=False) as file:
                bucket.write_bytecode(file)
            os.replace(file.name, self._folder / bucket.key)


@cache
def _build_object_environment() -> Environment:
    return build_jinja_yaml_environment(format_template_expression)


def build_jinja_yaml_environment(finalize: Callable[[Any], str]) -> Environment:
    """Return the environment of YAML templates. `finalize` prints values, and constants as
    `format_template_expression` does."""
    environment = _YamlEnvironment(
        loader=FileSystemLoader(TEMPLATES_FOLDER),
        bytecode_cache=_Compiled("yaml"),
        undefined=StrictUndefined,
        autoescape=True,  # makes macros return Markup, so that their output is not quoted twice
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
    )
    environment.filters["indent"] = _indent_macro_output  # five times faster than jinja's own on Markup
    return environment


@cache
def _build_jinja_script_environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES_FOLDER),
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
    """Render a YAML template. Raises InternalError with the template's line on a mistake in it."""
    return _render_jinja_template_file(_build_object_environment(), name, values)


def render_script(name: str, values: dict[str, Any]) -> str:
    """Render a shell template; every value is quoted for the shell. Raises InternalError as `render_yaml`."""
    return _render_jinja_template_file(_build_jinja_script_environment(), name, values)


def _render_jinja_template_file(environment: Environment, name: str, values: dict[str, Any]) -> str:
    try:
        return environment.get_template(name).render(values)
    except TemplateError as error:
        line = getattr(error, "lineno", None)
        place = f"templates/{name}" + (f":{line}" if line else "")
        raise InternalError(f"bug in {place}: {error}", "Please report it.") from error
