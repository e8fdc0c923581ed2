"""A template from a job's file: its fields below `job:`, and parameters in place of some of their values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from gangplan.edits import edit_field, read_value
from gangplan.errors import UserError
from gangplan.objects import format_scalar
from gangplan.source import Document, load_document
from gangplan.spec.job import TrainingJob
from gangplan.spec.job_template import NOT_IN_JOB_TEMPLATE
from gangplan.starter.sweeps import (
    format_parameter_placeholder,
    indent_block,
    insert_placeholders_in_new_command,
    list_blocks_of_job_to_copy,
    read_comments_above,
)

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_TYPES = {bool: "boolean", int: "integer", float: "number"}


def parse_new_template_parameters(given: Sequence[str]) -> dict[str, str]:
    """Parse texts such as `workers` and `lr=1e-4` into names and defaults; an empty default is the job's own value.
    Raises UserError."""
    found: dict[str, str] = {}
    for text in given:
        name, equals, default = text.partition("=")
        if not _NAME.fullmatch(name) or (equals and not default):
            raise UserError(
                f"--parameter {text} names no parameter", "Write --parameter lr, or --parameter lr=1e-4."
            )
        if name in found:
            raise UserError(f"--parameter {name} is there twice", "Keep one.")
        found[name] = default
    return found


def render_new_template_text(job: bytes, file: str, parameters: Mapping[str, str], head: str) -> str:
    """Write a template of a job after the text `head`; comments are kept, except those in a command that gets
    parameters.

    A parameter is a field of the job with one value, else `--NAME` of its command. Raises UserError for a job
    that cannot be read or has a template, and for a parameter without a value.
    """
    document, findings = load_document(job, file)
    if document is None or not isinstance(document.value, dict) or findings:
        raise UserError(f"{file} cannot be read", f"gangplan validate {file} says why.")
    fields = document.value
    if fields.get("kind") != "TrainingJob" or "template" in fields:
        why = "is made from a template" if fields.get("kind") == "TrainingJob" else "is not a job"
        raise UserError(f"{file} {why}", "Name the spec of a job that is written out.")
    of_field = {
        name for name in parameters if _is_new_template_parameter_a_field(name, parameters[name], document)
    }
    of_command = [name for name in parameters if name not in of_field]
    defaults = {
        name: default or _find_value_of_new_template_parameter(document, name, name in of_field)
        for name, default in parameters.items()
    }
    rows = "".join(f"  {name}: {_describe_new_template_parameter(text)}\n" for name, text in defaults.items())
    about = [block for name, block in list_blocks_of_job_to_copy(job.decode()) if name == "description"]
    text = (
        f"{head}apiVersion: gangplan.dev/v1\nkind: JobTemplate\n"
        + "".join(f"{block.rstrip()}\n" for block in about)
        + (f"parameters:\n{rows}" if rows else "")
        + "job:\n"
        + "".join(_list_job_blocks_of_new_template(job.decode().removeprefix("\ufeff"), document, of_command))
    )
    for name in sorted(of_field):
        text = edit_field(text, file, ("job", name), f'"{format_parameter_placeholder(name)}"')
    made, _ = load_document(text.encode(), file)
    wanted = {name for name in fields if name not in {*NOT_IN_JOB_TEMPLATE, "description"}} | of_field
    if made is None or not isinstance(made.value.get("job"), dict) or {*made.value["job"]} != wanted:
        help = "Write the template by hand, with the fields of the job below job:."
        raise UserError(f"the fields of {file} cannot be taken over as they are", help)
    return text


def render_job_of_new_template(job: bytes, name: str) -> str:
    """Write the spec that makes the same job from the template, with the defaults of its parameters."""
    blocks = dict(list_blocks_of_job_to_copy(job.decode().removeprefix("\ufeff")))
    own = "".join(
        f"{blocks[field].rstrip()}\n"
        for field in NOT_IN_JOB_TEMPLATE
        if field in blocks and field not in ("apiVersion", "kind")
    )
    return f"apiVersion: gangplan.dev/v1\nkind: TrainingJob\ntemplate: {name}\n{own}"


def _is_new_template_parameter_a_field(name: str, default: str, document: Document) -> bool:
    """Return whether a parameter is a field of the job: one that it has, or gets with a default. Raises
    UserError."""
    if (
        name in NOT_IN_JOB_TEMPLATE
        or name == "description"
        or isinstance(document.value.get(name), dict | list)
    ):
        why = NOT_IN_JOB_TEMPLATE.get(name, "Name a field with one value, or a flag of the command.")
        raise UserError(f"--parameter {name} is not a parameter of a template", why)
    if name in document.value:
        return True
    known = {field.alias or key for key, field in TrainingJob.model_fields.items()}
    return name in known and bool(default) and _find_flag_value_for_new_template(document, name) is None


def _find_value_of_new_template_parameter(document: Document, name: str, is_field: bool) -> str:
    """Return the value that a parameter has in the job, as YAML. Raises UserError."""
    if is_field:
        text = document.text((name,)) or ""
        return format_scalar(text) if document.is_quoted((name,)) else text
    found = _find_flag_value_for_new_template(document, name)
    if found is None:
        raise UserError(
            f"--parameter {name} has no value: {document.file} has neither a field {name} nor --{name} in its command",
            f"Give it a default: --parameter {name}=VALUE.",
        )
    return found


def _find_flag_value_for_new_template(document: Document, name: str) -> str | None:
    """Return the value of `--NAME` in the command, as YAML; None if it is not there or has none."""
    value = document.value.get("command")
    if isinstance(value, str):
        found = re.search(rf"(?<!\S)--{re.escape(name)}[= ](\S+)", value)
        return found[1] if found else None
    words = [document.text(("command", index)) or str(word) for index, word in enumerate(value or ())]
    for index, word in enumerate(words):
        flag, equals, own = word.partition("=")
        if flag == f"--{name}":
            following = words[index + 1] if index + 1 < len(words) else "--"
            return own if equals else following if not following.startswith("--") else None
    return None


def _describe_new_template_parameter(default: str) -> str:
    """Return the declaration of a parameter, whose type is that of its default."""
    try:
        value: Any = read_value(default)
    except ValueError:
        value, default = default, format_scalar(default)
    if not isinstance(value, str | bool | int | float):
        value, default = default, format_scalar(default)
    return f"{{type: {_TYPES.get(type(value), 'string')}, default: {default}}}"


def _list_job_blocks_of_new_template(text: str, document: Document, parameters: Sequence[str]) -> list[str]:
    found = []
    for name, block in list_blocks_of_job_to_copy(text):
        if name in NOT_IN_JOB_TEMPLATE or name == "description":
            continue
        if name == "command" and parameters:
            block = _insert_flags_in_new_template(block, document, parameters)
        found.append(indent_block(block))
    return found


def _insert_flags_in_new_template(block: str, document: Document, parameters: Sequence[str]) -> str:
    """Put placeholders into the command; in a command of one line, in place of the flags that it has."""
    value = document.value["command"]
    if not isinstance(value, str):
        return insert_placeholders_in_new_command(block, document, parameters)
    for name in parameters:
        new = f"--{name}={format_parameter_placeholder(name)}"
        found = re.search(rf"(?<!\S)--{re.escape(name)}[= ]\S+", value)
        value = f"{value[: found.start()]}{new}{value[found.end() :]}" if found else f"{value} {new}"
    return f"{read_comments_above(block)}command: {format_scalar(value)}\n"
