"""Judge manifests with kubeconform against local schemas: files or bytes in, one Verdict per resource out.

What is said of kubeconform here was read in the source of 0.7.0 and is kept by tests against the program.
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
from gangplan.tools.find import FoundTool, search
from gangplan.tools.pins import KUBECONFORM
from gangplan.tools.run import GO, first_lines, run

#: How schema files are named below a schema location: `trainjob-trainer-v1alpha1.json`, `pod-v1.json`.
FILE_TEMPLATE = "{{.ResourceKind}}{{.KindSuffix}}.json"

#: It walks its arguments and passes over files with any other ending without a word.
_ENDINGS = (".yaml", ".yml", ".json")

#: Bytes of file names in one call; macOS allows 256 KiB for arguments and environment, Linux more.
_MAX_ARGUMENT_BYTES = 128 << 10

#: One problem inside its message, whose line ends it has turned into blanks.
_PROBLEM = re.compile(r"- at '(?P<path>[^']*)': (?P<message>.*?)(?=\s+- at '[^']*': |$)", re.DOTALL)

#: Said of an object whose own children say what is wrong.
_HOLLOW = "validation failed"

_NO_SCHEMA = "could not find schema for"

Status = Literal["valid", "invalid", "error"]


# One thing wrong: where in the resource (a JSON pointer, empty for its root), and what.
AtPointer = tuple[str, str]


@dataclass(frozen=True)
class KubeconformVerdict:
    """What kubeconform says of one resource; `error` means that it could not be judged.

    `file` is `-` for bytes. `document` counts the resources of one file from 0, in their order: kubeconform
    tells no namespace, so this is how a caller knows which of its objects is meant.
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
        """Return the JSON pointer of the first problem, or an empty string."""
        return self.problems[0][0] if self.problems else ""


@dataclass(frozen=True)
class Kubeconform:
    """The program at a known version. It never uses the network: its only schema location is a folder."""

    found: FoundTool

    @property
    def label(self) -> str:
        """Return how a run names who judged: `kubeconform 0.7.0`."""
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
        """Judge every resource of some YAML text or files, in their order.

        `strict` refuses duplicate keys (unknown fields are the schemas' business). `expected` is the number
        of resources that must get a verdict. Raises ToolError when not everything was looked at.
        """
        if not schema_location.is_dir():
            raise ToolError(f"nothing was checked: there is no schema folder {schema_location}")
        if isinstance(manifests, bytes):
            with tempfile.TemporaryDirectory(prefix="gangplan-") as folder:
                # Not through its standard input: there 0.7.0 parses documents in a buffer that it refills at
                # the same time (15 MB of 375 kB documents: an invented syntax error in 5 runs of 6), and
                # passes over a document larger than 256 MiB without a word.
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
        for batch in _batches(files):
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
        done = run(
            [
                *(self.found.path, "-output", "json", "-verbose"),
                # One worker keeps the order; two are not faster (0.30 s and 0.24 s for 900 resources).
                *("-n", "1"),
                *("-schema-location", _template(schemas)),
                *(["-strict"] if strict else []),
                *by_name,
            ],
            timeout_s=timeout_s,
            env=GO,
            ok=(0, 1),
        )
        counts: Counter[Path] = Counter()
        verdicts: list[KubeconformVerdict] = []
        for result in _results(done.stdout, done.stderr):
            # Without a status: an empty document, such as the one before a leading `---`.
            if result.get("status"):
                file = by_name.get(str(result.get("filename")), Path(str(result.get("filename"))))
                verdicts.append(_verdict(result, file, counts[file], schemas))
                counts[file] += 1
        if (done.returncode == 1) != any(verdict.status != "valid" for verdict in verdicts):
            raise ToolError(
                f"{self.label} ended with code {done.returncode} but its verdicts say otherwise; "
                f"on its standard error: {first_lines(done.stderr)}"
            )
        return verdicts


def pick(passed_over: list[str] | None = None) -> Kubeconform | None:
    """Return kubeconform where an acceptable version is found; ToolError for a broken override.

    Programs of the name that cannot be used are added to `passed_over`, one sentence each.
    """
    outcome = search(KUBECONFORM)
    if passed_over is not None and outcome.found is None:
        passed_over += map(str, outcome.refused)
    return Kubeconform(outcome.found) if outcome.found else None


def schema_file(api_version: str, kind: str) -> str:
    """Return the file name that kubeconform looks for: lower case, first label of the group, core without."""
    group, _, version = api_version.rpartition("/")
    parts = [kind, group.split(".")[0], version] if group else [kind, version]
    return "-".join(parts).lower() + ".json"


def _template(schemas: Path) -> str:
    """Return the schema location; a brace in the folder's own name must not start a template action."""
    return str(schemas).replace("{{", '{{"{{"}}') + "/" + FILE_TEMPLATE


def _batches(files: Sequence[Path]) -> Iterator[list[Path]]:
    """Cut a list of files so that each call's arguments fit."""
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


def _results(stdout: bytes, stderr: str) -> list[dict[str, Any]]:
    try:
        answer = json.loads(stdout)["resources"]
        if isinstance(answer, list) and all(isinstance(result, dict) for result in answer):
            return answer
    except (ValueError, KeyError, TypeError):
        pass
    raise ToolError(f"kubeconform did not print its JSON output: {first_lines(stderr)}")


def _verdict(result: dict[str, Any], file: Path, document: int, schemas: Path) -> KubeconformVerdict:
    api_version, kind = str(result.get("version", "")), str(result.get("kind", ""))
    raw = " ".join(str(result.get("msg", "")).split())
    problems: tuple[AtPointer, ...] = ()
    status: Status = "error"
    if result["status"] == "statusValid":
        status, message = "valid", ""
    elif result["status"] == "statusInvalid":
        status, problems = "invalid", _problems(raw)
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


def _problems(text: str) -> tuple[AtPointer, ...]:
    found = ((match["path"], match["message"].strip()) for match in _PROBLEM.finditer(text))
    return tuple((pointer, said) for pointer, said in found if said != _HOLLOW)
