"""Statements about the inputs of rendered/: in-toto Statement v1 with SLSA Provenance v1 as its predicate.

Fields are those of in-toto/attestation spec/v1 (Statement, ResourceDescriptor) and slsa.dev/provenance/v1. A
statement has no time, no path of a machine and no commit, so that the same files give the same bytes
everywhere; the person or CI that runs gangplan signs it and says when and where (docs/provenance.md).
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gangplan.errors import UserError, build_unreadable_file_error
from gangplan.records import dataclass

TYPE = "https://in-toto.io/Statement/v1"
PREDICATE = "https://slsa.dev/provenance/v1"
BUILD = "https://gangplan.dev/render/v1"
# gangplan cannot vouch for the machine that it runs on: CI names itself.
DEFAULT_BUILDER = "https://gangplan.dev/builder/unspecified"
PAYLOAD = "application/vnd.in-toto+json"
# The most bytes of a file of statements: 10 000 runs on ten clusters take a tenth.
_MOST_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class RenderStatement:
    """The inputs and outputs of one cluster.

    It has the digests (SHA-256) of all that was read and of all that was rendered, by path from the root of
    the workspace, and the versions of the programs that decide the bytes.
    """

    cluster: str
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    versions: Mapping[str, str]


def format_provenance_statement(statement: RenderStatement, builder: str = DEFAULT_BUILDER) -> str:
    """Return the statement as one line of JSON, the same bytes for the same contents."""
    document = {
        "_type": TYPE,
        "subject": _build_resource_descriptors(statement.outputs),
        "predicateType": PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD,
                "externalParameters": {"cluster": statement.cluster},
                "resolvedDependencies": _build_resource_descriptors(statement.inputs),
            },
            "runDetails": {"builder": {"id": builder, "version": dict(sorted(statement.versions.items()))}},
        },
    }
    return json.dumps(document, ensure_ascii=True, separators=(",", ":")) + "\n"


def _build_resource_descriptors(digests: Mapping[str, str]) -> list[dict[str, Any]]:
    return [{"name": name, "digest": {"sha256": digest}} for name, digest in sorted(digests.items())]


def read_provenance_statements(file: Path) -> list[RenderStatement]:
    """Read the statements of a file: JSON, JSON Lines, DSSE envelopes and bundles around them.

    Signatures are not checked. Raises UserError for anything else.
    """
    try:
        if file.stat().st_size > _MOST_BYTES:
            raise UserError(f"{file} is not a statement: it has more than {_MOST_BYTES >> 20} MiB")
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as failed:
        raise build_unreadable_file_error(file, failed, "Name a file of gangplan provenance.") from None
    found = [
        _parse_provenance_statement(file, document) for document in _parse_provenance_statements(file, text)
    ]
    if not found:
        raise UserError(f"{file} holds no statement", "Write one: gangplan provenance --output DIR.")
    return found


def _parse_provenance_statements(file: Path, text: str) -> Iterator[Any]:
    """Yield all documents of a file: one that spans several lines, or one on each line."""
    try:
        yield json.loads(text)
        return
    except (ValueError, RecursionError):
        pass
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                yield json.loads(line)
            except (ValueError, RecursionError):
                raise UserError(
                    f"{file}:{number}:1: not JSON", "Name a file of gangplan provenance."
                ) from None


def _parse_provenance_statement(file: Path, document: Any) -> RenderStatement:
    body = _open_dsse_envelope(file, document)
    try:
        if body["_type"] != TYPE or body["predicateType"] != PREDICATE:
            raise UserError(
                f"{file} holds a statement of another type: {body['predicateType']}",
                f"It must be {PREDICATE}.",
            )
        definition = body["predicate"]["buildDefinition"]
        parameters = definition["externalParameters"]
        if definition["buildType"] != BUILD or set(parameters) != {"cluster"}:
            raise UserError(f"{file} is not about a render of this format", f"Its buildType must be {BUILD}.")
        versions = body["predicate"]["runDetails"]["builder"].get("version") or {}
        return RenderStatement(
            str(parameters["cluster"]),
            _read_resource_digests(definition.get("resolvedDependencies") or []),
            _read_resource_digests(body["subject"]),
            {str(name): str(version) for name, version in versions.items()},
        )
    except (KeyError, TypeError, AttributeError):
        raise UserError(
            f"{file} is not an in-toto Statement v1", "Name a file of gangplan provenance."
        ) from None


def _read_resource_digests(described: list[Any]) -> dict[str, str]:
    return {str(one["name"]): str(one["digest"]["sha256"]) for one in described}


def _open_dsse_envelope(file: Path, document: Any) -> Any:
    """Return a statement from a DSSE envelope, or from a bundle around one."""
    if isinstance(document, dict) and isinstance(document.get("dsseEnvelope"), dict):
        document = document["dsseEnvelope"]
    if not isinstance(document, dict) or "payload" not in document:
        return document
    try:
        if document.get("payloadType") != PAYLOAD:
            raise ValueError
        return json.loads(base64.b64decode(str(document["payload"]), validate=True))
    except (ValueError, binascii.Error, RecursionError):
        raise UserError(
            f"{file} is an envelope without a statement", f"Its payloadType must be {PAYLOAD}."
        ) from None
