"""A sweep from a job's file: its fields become the template, with a placeholder in the command for each
parameter."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from gangplan.edits import edit_field
from gangplan.errors import UserError
from gangplan.objects import format_scalar
from gangplan.source import Document, load_document
from gangplan.spec.sweep_checks import NOT_IN_SWEEP_TEMPLATE

Parameters = Mapping[str, Sequence[str]]
_FIELD = re.compile(r"([A-Za-z]+)[ \t]*:")
_COMMENTS = re.compile(r"(?:#.*\n)*")


def parse_new_sweep_parameters(given: Sequence[str]) -> dict[str, list[str]]:
    """Parse texts such as `lr=1e-4,3e-4` into names and values. Raises UserError."""
    found: dict[str, list[str]] = {}
    for text in given:
        name, equals, values = text.partition("=")
        if not equals or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", name) or not all(values.split(",")):
            raise UserError(f"--parameter {text} has no values", "Write --parameter lr=1e-4,3e-4.")
        if name in found:
            raise UserError(f"--parameter {name} is there twice", "Write all values into one: lr=1e-4,3e-4.")
        found[name] = values.split(",")
    return found


def render_new_sweep_text(job: bytes, file: str, parameters: Parameters, at_once: int, head: str) -> str:
    """Write a sweep of a job after the text `head`. Comments of the fields that are taken over are kept, except
    those in the command. A parameter is a field of the job with one value, else `--NAME` of its command.

    Raises UserError for a job that cannot be read, or whose fields do not each start on a line of their own.
    """
    document, findings = load_document(job, file)
    if document is None or not isinstance(document.value, dict) or findings:
        raise UserError(f"{file} cannot be read", f"gangplan validate {file} says why.")
    grid = "".join(
        f"    {name}: [{', '.join(map(_format_sweep_value, values))}]\n"
        for name, values in parameters.items()
    )
    of_field = [name for name in parameters if _is_new_sweep_parameter_a_field(name, document)]
    others = {name: values for name, values in parameters.items() if name not in of_field}
    template = "".join(_build_new_sweep_template_blocks(job.decode().lstrip("\ufeff"), document, others))
    text = (
        f"{head}apiVersion: gangplan.dev/v1\nkind: Sweep\nparameters:\n  grid:\n{grid}"
        f"maxConcurrent: {at_once}\ntemplate:\n{template}"
    )
    for name in of_field:
        text = edit_field(text, file, ("template", name), f'"{format_parameter_placeholder(name)}"')
    made, _ = load_document(text.encode(), file)
    wanted = {name for name in document.value if name not in NOT_IN_SWEEP_TEMPLATE}
    if "template" in wanted and "command" not in wanted and others:
        wanted.add("parameters")
    if (
        made is None
        or not isinstance(made.value.get("template"), dict)
        or {*made.value["template"]} != wanted
    ):
        help = "Write template: by hand, with the fields of the job below it."
        raise UserError(f"the fields of {file} cannot be taken over as they are", help)
    return text


def _is_new_sweep_parameter_a_field(name: str, document: Document) -> bool:
    """Return whether a parameter is a field that the job has, and no flag of its command."""
    value = document.value.get(name)
    words = document.value.get("command") or ()
    words = words.split() if isinstance(words, str) else map(str, words)
    is_flag = any(word.partition("=")[0] == f"--{name}" for word in words)
    has_one = value is not None and not isinstance(value, dict | list)
    return has_one and name not in {*NOT_IN_SWEEP_TEMPLATE, "command", "description"} and not is_flag


def _build_new_sweep_template_blocks(text: str, document: Document, parameters: Parameters) -> list[str]:
    """Return the fields of a job, each indented, with the comments above them.

    A job from a template gets the parameters of the sweep, too.
    """
    found = []
    if parameters and "template" in document.value and not {"parameters", "command"} & {*document.value}:
        pairs = ", ".join(f'{name}: "{format_parameter_placeholder(name)}"' for name in parameters)
        found.append(f"  parameters: {{{pairs}}}\n")
    for name, block in list_blocks_of_job_to_copy(text):
        if name in NOT_IN_SWEEP_TEMPLATE:
            continue
        if name == "command":
            block = insert_placeholders_in_new_command(block, document, parameters)
        elif name == "parameters" and "command" not in document.value:
            block = _insert_new_sweep_placeholders(block, document, parameters)
        found.append(indent_block(block))
    return found


def list_blocks_of_job_to_copy(text: str) -> list[tuple[str, str]]:
    """Return the fields of a file, each with the comments directly above it and all lines up to the next one.

    Comments at the top of the file are about the file, and come with no field.
    """
    starts: list[tuple[int, str]] = []
    at, above = 0, None
    for line in text.split("\n"):
        if field := _FIELD.match(line):
            starts.append((at if above is None or not starts else above, field[1]))
        above = (at if above is None else above) if line.startswith("#") else None
        at += len(line) + 1
    ends = [start for start, _ in starts[1:]] + [len(text)]
    return [(name, text[start:end]) for (start, name), end in zip(starts, ends, strict=True)]


def indent_block(block: str) -> str:
    """Indent the lines of a field by one level."""
    lines = block.rstrip("\n").split("\n")
    return "".join(f"  {line}\n" if line.strip() else "\n" for line in lines)


def _insert_new_sweep_placeholders(block: str, document: Document, parameters: Parameters) -> str:
    """Put placeholders into the parameters of a job that takes its command from a template."""
    for name in parameters:
        block = edit_field(
            block, document.file, ("parameters", name), f'"{format_parameter_placeholder(name)}"'
        )
    return block


def read_comments_above(block: str) -> str:
    """Return the comments above the field of a block."""
    found = _COMMENTS.match(block)
    return found[0] if found else ""


def insert_placeholders_in_new_command(block: str, document: Document, parameters: Iterable[str]) -> str:
    """Return the block of a command with a placeholder for each parameter: in place of its value, or at the
    end."""
    value, above = document.value["command"], read_comments_above(block)
    if not isinstance(value, list):
        words = "".join(f" --{name}={format_parameter_placeholder(name)}" for name in parameters)
        return f"{above}command: {format_scalar(f'{value}{words}')}\n"
    words_of = [document.text(("command", index)) or str(word) for index, word in enumerate(value)]
    for name in parameters:
        flag = f"--{name}"
        at = next((index for index, word in enumerate(words_of) if word.split("=")[0] == flag), None)
        if at is None:
            words_of.append(f"{flag}={format_parameter_placeholder(name)}")
        elif "=" in words_of[at] or at + 1 == len(words_of):
            words_of[at] = f"{flag}={format_parameter_placeholder(name)}"
        else:
            words_of[at + 1] = format_parameter_placeholder(name)
    return f"{above}command:\n" + "".join(f"  - {format_scalar(word)}\n" for word in words_of)


def format_parameter_placeholder(name: str) -> str:
    """Return what stands for the value of a parameter: `${{ parameters.lr }}`."""
    return f"${{{{ parameters.{name} }}}}"


def _format_sweep_value(text: str) -> str:
    """Write a value as YAML: unchanged if it is one scalar with this text."""
    document, _ = load_document(f"[{text}]\n".encode(), "value")
    is_plain = document is not None and len(document.value) == 1 and document.text((0,)) == text
    return text if is_plain else format_scalar(text)
