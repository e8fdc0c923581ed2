"""A job as a value: the fields of a spec, and its text as a person would write it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Unpack

from gangplan.errors import UserError
from gangplan.findings import Finding
from gangplan.source import Document, FileLimits, load_document, load_file
from gangplan.spec.job import TrainingJob as Format
from gangplan.spec.load import parse_spec_document
from gangplan.starter.text import NEW_FILE_KINDS, render_file_text
from gangplan.starter.values import WrittenScalar, parse_command_of_new_job

if TYPE_CHECKING:
    from pathlib import Path

    from gangplan.api.fields import JobFields
    from gangplan.workspace import Workspace

_DEEPEST = FileLimits().max_depth
# A command with one of these stays one line, so that a finding says what to write instead.
_FOR_A_SHELL = re.compile(r"[;&|<>$`\n]")
_HEAD = ("apiVersion", "kind")
# Files have the order of the format. Fields that the format does not have come last, and are reported.
_ORDER = {field.alias or name: at for at, (name, field) in enumerate(Format.model_fields.items())}


class TrainingJob:
    """A job by the fields of its spec, each as in a file: `TrainingJob(image="pytorch", gpus=4)`.

    A job never changes. Values that the format does not allow are reported in `findings`.
    """

    __slots__ = ("_text", "_values")

    _values: dict[str, Any]

    def __init__(self, **fields: Unpack[JobFields]) -> None:
        """Create a job. Values are numbers, texts such as "64Gi", lists and dicts; None omits a field.

        A command in one line is split into words. Raises TypeError for a value of another type or one that is
        nested deeper than a file may be, ValueError for a number of more than 64 bits or half a surrogate
        pair.
        """
        given = {
            _read_python_enum_or_text("a field", name): _convert_python_value_to_yaml(name, value)
            for name, value in fields.items()
            if value is not None
        }
        if isinstance(command := given.get("command"), str) and not _FOR_A_SHELL.search(command):
            given["command"] = parse_command_of_new_job(command)
        self._values = {name: given[name] for name in sorted(given, key=lambda name: _ORDER.get(name, 999))}
        self._text = ""

    @classmethod
    def from_yaml(cls, text: str) -> TrainingJob:
        """Return the job that a file describes; `to_yaml` returns the same text again.

        Raises UserError if the text is not one YAML document with fields, TypeError if it is not a text.
        """
        if not isinstance(text, str):
            raise TypeError(f"the text of a file is expected, not {type(text).__name__}")
        return cls._from(*load_document(text.encode(errors="surrogatepass"), "job"))

    @classmethod
    def _from(cls, document: Document | None, findings: Sequence[Finding]) -> TrainingJob:
        """Return the job of a document. Raises UserError if there is no document, with the first of the
        findings."""
        if document is None or not isinstance(document.value, dict):
            first = findings[0] if document is None else parse_spec_document(Format, document)[1][0]
            place = "" if first.where.file == "job" else f"{first.where}: "
            raise UserError(f"{place}this is not a job: {first.message}", first.help or None)
        job = cls()
        fields = _keep_numbers_as_written(document, (), document.value)
        job._values = {name: value for name, value in fields.items() if name not in _HEAD}
        job._text = document.source
        return job

    @property
    def fields(self) -> dict[str, Any]:
        """The fields as they were given; a copy, because a job never changes."""
        return deepcopy(self._values)

    def but(self, **fields: Unpack[JobFields]) -> TrainingJob:
        """Return the same job with other values; None removes a field."""
        return TrainingJob(**{**self._values, **fields})

    def to_yaml(self) -> str:
        """Return the spec as a file: short, in the order of the format."""
        return self._text or render_file_text("job", self._values, None, "")

    @property
    def findings(self) -> list[Finding]:
        """What the format alone reports about the job; a workspace checks more. Lines are those of
        `to_yaml`."""
        document, findings = load_document(self.to_yaml().encode(), "job")
        return findings if document is None else parse_spec_document(Format, document)[1]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TrainingJob) and self._values == other._values

    def __hash__(self) -> int:
        return hash(_freeze_field_value(self._values))

    def __repr__(self) -> str:
        return f"TrainingJob({', '.join(f'{name}={value!r}' for name, value in self._values.items())})"


def load_jobs_as_python_values(workspace: Workspace) -> dict[str, TrainingJob]:
    """Return the jobs of a workspace by file, without sweeps and templates. Raises UserError."""
    if workspace.is_refused:
        first = workspace.findings[0]
        raise UserError(f"{first.where}: {first.message}", first.help or None)
    files = [one.file for one in workspace.spec_files if one.file not in workspace.sweeps]
    read = ((file, load_file(workspace.root / file, file)) for file in files)
    return {file: TrainingJob._from(*found) for file, found in read}


def format_job_file(job: TrainingJob, root: Path, file: str) -> str:
    """Return the job's file for a workspace; its first line tells editors where the schema is."""
    return job._text or render_file_text("job", job._values, root, file)


def _convert_python_value_to_yaml(name: str, value: Any, depth: int = 0) -> Any:
    """Return a value as YAML has it. Raises TypeError and ValueError."""
    if depth > _DEEPEST:
        raise TypeError(f"{name[:40]}... nests deeper than {_DEEPEST} levels, or holds itself")
    if isinstance(value, Mapping):
        return {
            _read_python_enum_or_text(name, key): _convert_python_value_to_yaml(
                f"{name}.{key}", one, depth + 1
            )
            for key, one in value.items()
        }
    if isinstance(value, str):
        return _read_python_enum_or_text(name, value)
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [
            _convert_python_value_to_yaml(f"{name}[{index}]", one, depth + 1)
            for index, one in enumerate(value)
        ]
    if isinstance(value, (bool, WrittenScalar)):
        return value
    if isinstance(
        value, float
    ):  # numbers of other libraries and enums are subclasses that a file cannot contain
        return float(value)
    if isinstance(value, int):
        if not -(2**63) <= value < 2**64:
            raise ValueError(f"{name} does not fit into 64 bits")
        return int(value)
    raise TypeError(
        f"{name} is {value!r}; a {NEW_FILE_KINDS['job']} is made of numbers, texts, lists and dicts"
    )


def _read_python_enum_or_text(name: str, value: object) -> str:
    """Return a text; for a member of a StrEnum its value. Raises ValueError."""
    text = str.__str__(value) if isinstance(value, str) else str(value)
    if half := re.search("[\ud800-\udfff]", text):
        raise ValueError(f"{name}: half a surrogate pair, U+{ord(half[0]):04X}, is not text")
    return text


def _freeze_field_value(value: Any) -> Any:
    """Return a hashable form, equal for equal values."""
    if isinstance(value, dict):
        return frozenset((key, _freeze_field_value(one)) for key, one in value.items())
    return tuple(map(_freeze_field_value, value)) if isinstance(value, list) else value


def _keep_numbers_as_written(document: Document, path: tuple[str | int, ...], value: Any) -> Any:
    """Return the value at a path with decimal numbers as written, so that an argument 1e-4 stays
    unchanged."""
    if isinstance(value, dict):
        return {key: _keep_numbers_as_written(document, (*path, key), one) for key, one in value.items()}
    if isinstance(value, list):
        return [_keep_numbers_as_written(document, (*path, index), one) for index, one in enumerate(value)]
    return WrittenScalar(document.text(path) or repr(value)) if isinstance(value, float) else value
