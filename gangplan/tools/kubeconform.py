"""Judge manifests with kubeconform against local schemas, with one verdict per resource.

Facts about kubeconform were read in the source of 0.7.0 and are tested with the program itself.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from gangplan.errors import ToolError
from gangplan.records import dataclass
from gangplan.tools.find import FoundTool, search_tool
from gangplan.tools.pins import KUBECONFORM_TOOL
from gangplan.tools.run import GO_ENVIRONMENT, join_first_lines, run_program

#: The names of schema files in a schema location: `trainjob-trainer-v1alpha1.json`, `pod-v1.json`.
FILE_TEMPLATE = "{{.ResourceKind}}{{.KindSuffix}}.json"

#: kubeconform silently skips files with any other ending.
_ENDINGS = (".yaml", ".yml", ".json")

#: Bytes of file names per call; macOS allows 256 KiB for arguments and environment, Linux more.
_MAX_ARGUMENT_BYTES = 128 << 10

#: One problem in a message of kubeconform, whose line ends have become blanks.
_PROBLEM = re.compile(r"- at '(?P<path>[^']*)': (?P<message>.*?)(?=\s+- at '[^']*': |$)", re.DOTALL)

#: The message for an object whose children have messages of their own.
_HOLLOW = "validation failed"

_NO_SCHEMA = "could not find schema for"

Status = Literal["valid", "invalid", "error"]


# A problem: its place in the resource (a JSON pointer, empty for the root), and its message.
AtPointer = tuple[str, str]


@dataclass(frozen=True)
class KubeconformVerdict:
    """The verdict of kubeconform on one resource; `error` means that it could not be judged.

    `file` is `-` for bytes. `document` counts the resources of one file from 0, in their order: kubeconform
    reports no namespace, so callers need it to identify the object.
    `message` is empty for a valid resource and a sentence without a full stop otherwise.
    """

    file: Path
    document: int
    api_version: str
    kind: str
    name: str
    status: Status
    message: str
    problems: tuple[AtPointer, ...] = ()

    @property
    def path(self) -> str:
        """The JSON pointer of the first problem, or an empty string."""
        return self.problems[0][0] if self.problems else ""


@dataclass(frozen=True)
class Kubeconform:
    """kubeconform at a known version. It never uses the network: its only schema location is a folder."""

    found: FoundTool

    @property
    def label(self) -> str:
        """The name of the program in reports: `kubeconform 0.7.0`."""
        return self.found.label

    def check(
        self,
        manifests: bytes | Sequence[Path],
        schema_location: Path,
        *,
        strict: bool = True,
        expected: int | None = None,
        timeout_s: float = 60.0,
    ) -> list[KubeconformVerdict]:
        """Judge every resource of a YAML text or of files, in their order.

        `strict` refuses duplicate keys (unknown fields are up to the schemas). `expected` is the number of
        resources that must get a verdict. Raises ToolError unless everything was judged.
        """
        if not schema_location.is_dir():
            raise ToolError(f"nothing was checked: there is no schema folder {schema_location}")
        if isinstance(manifests, bytes):
            with tempfile.TemporaryDirectory(prefix="gangplan-") as folder:
                # Not through standard input: there 0.7.0 parses documents in a buffer that it refills at the
                # same time (15 MB of 375 kB documents: a false syntax error in 5 runs of 6), and silently
                # skips a document larger than 256 MiB.
                file = Path(folder) / "stdin.yaml"
                file.write_bytes(manifests)
                judged = self._check_files([file], schema_location, strict, timeout_s)
            verdicts = [replace(verdict, file=Path("-")) for verdict in judged]
        else:
            verdicts = self._check_files(manifests, schema_location, strict, timeout_s)
        if expected is not None and len(verdicts) != expected:
            raise ToolError(f"{self.label} judged {len(verdicts)} resources of {expected}")
        return verdicts

    def _check_files(
        self, files: Sequence[Path], schemas: Path, strict: bool, timeout_s: float
    ) -> list[KubeconformVerdict]:
        if not files:
            raise ToolError("nothing was checked: no manifest was given")
        for file in files:
            if file.suffix.lower() not in _ENDINGS or not file.is_file():
                raise ToolError(f"nothing was checked in {file}: it is not a YAML or JSON file")
        verdicts: list[KubeconformVerdict] = []
        for batch in _split_files_into_kubeconform_calls(files):
            verdicts += self._check_batch(batch, schemas.resolve(), strict, timeout_s)
        judged = {verdict.file for verdict in verdicts}
        for file in files:
            if file not in judged:
                raise ToolError(f"nothing was checked in {file}: it holds no resource")
        return verdicts

    def _check_batch(
        self, files: list[Path], schemas: Path, strict: bool, timeout_s: float
    ) -> list[KubeconformVerdict]:
        by_name = {str(file.absolute()): file for file in files}
        done = run_program(
            [
                *(self.found.path, "-output", "json", "-verbose"),
                # One worker keeps the order; two are not faster (0.30 s and 0.24 s for 900 resources).
                *("-n", "1"),
                *("-schema-location", _build_schema_location(schemas)),
                *(["-strict"] if strict else []),
                *by_name,
            ],
            timeout_s=timeout_s,
            env=GO_ENVIRONMENT,
            ok=(0, 1),
        )
        counts: Counter[Path] = Counter()
        verdicts: list[KubeconformVerdict] = []
        for result in _parse_kubeconform_output(done.stdout, done.stderr):
            # An empty document, such as the one before a leading `---`, has no status.
            if result.get("status"):
                file = by_name.get(str(result.get("filename")), Path(str(result.get("filename"))))
                verdicts.append(_parse_kubeconform_result(result, file, counts[file], schemas))
                counts[file] += 1
        if (done.returncode == 1) != any(verdict.status != "valid" for verdict in verdicts):
            raise ToolError(
                f"{self.label} ended with code {done.returncode} but its verdicts say otherwise; "
                f"on its standard error: {join_first_lines(done.stderr)}"
            )
        return verdicts


def find_kubeconform(passed_over: list[str] | None = None) -> Kubeconform | None:
    """Return kubeconform, or None if no acceptable version is found. Raises ToolError for a broken override.

    Without one, programs of this name that cannot be used are added to `passed_over`, one sentence each.
    """
    outcome = search_tool(KUBECONFORM_TOOL)
    if passed_over is not None and outcome.found is None:
        passed_over += map(str, outcome.refused)
    return Kubeconform(outcome.found) if outcome.found else None


def schema_file(api_version: str, kind: str) -> str:
    """Return the file name that kubeconform expects: in lower case, with the group's first label, if any."""
    group, _, version = api_version.rpartition("/")
    parts = [kind, group.split(".")[0], version] if group else [kind, version]
    return "-".join(parts).lower() + ".json"


def _build_schema_location(schemas: Path) -> str:
    """Return the schema location; braces in the folder's name must not start a template action."""
    return str(schemas).replace("{{", '{{"{{"}}') + "/" + FILE_TEMPLATE


def _split_files_into_kubeconform_calls(files: Sequence[Path]) -> Iterator[list[Path]]:
    """Split a list of files so that the arguments of each call fit."""
    batch: list[Path] = []
    size = 0
    for file in files:
        length = len(str(file.absolute()).encode()) + 9  # a pointer and the closing zero
        if batch and size + length > _MAX_ARGUMENT_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(file)
        size += length
    if batch:
        yield batch


def _parse_kubeconform_output(stdout: bytes, stderr: str) -> list[dict[str, Any]]:
    try:
        answer = json.loads(stdout)["resources"]
        if isinstance(answer, list) and all(isinstance(result, dict) for result in answer):
            return answer
    except (ValueError, KeyError, TypeError):
        pass
    raise ToolError(f"kubeconform did not print its JSON output: {join_first_lines(stderr)}")


def _parse_kubeconform_result(
    result: dict[str, Any], file: Path, document: int, schemas: Path
) -> KubeconformVerdict:
    api_version, kind = str(result.get("version", "")), str(result.get("kind", ""))
    raw = " ".join(str(result.get("msg", "")).split())
    problems: tuple[AtPointer, ...] = ()
    status: Status = "error"
    if result["status"] == "statusValid":
        status, message = "valid", ""
    elif result["status"] == "statusInvalid":
        status, problems = "invalid", _parse_schema_problems(raw)
        message = "; ".join(f"{pointer or '/'}: {said}" for pointer, said in problems) or raw
    elif raw.startswith(_NO_SCHEMA):
        wanted = schemas / schema_file(api_version, kind)
        cause = f"the schema {wanted} is broken" if wanted.is_file() else f"there is no schema {wanted}"
        message = f"{api_version} {kind} was not checked: {cause}"
    else:
        message = raw or f"it was not checked ({result['status']})"
    return KubeconformVerdict(
        file, document, api_version, kind, str(result.get("name", "")), status, message, problems
    )


def _parse_schema_problems(text: str) -> tuple[AtPointer, ...]:
    found = ((match["path"], match["message"].strip()) for match in _PROBLEM.finditer(text))
    return tuple((pointer, said) for pointer, said in found if said != _HOLLOW)
