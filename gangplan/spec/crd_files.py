"""Loading imported CRDs: schemas/<group>/<plural>.json for all clusters, overlays/<cluster>/schemas/ for
one."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from gangplan.findings import Finding, Location
from gangplan.model.crds import CrdFiles, read_crd
from gangplan.rules.policy import CRD_UNREADABLE

SCHEMAS_FOLDER = "schemas"
IMPORT_AGAIN = "Take it in again: gangplan schema import FILE."


def load_crds(
    root: Path, clusters: Iterable[str], findings: list[Finding]
) -> tuple[CrdFiles, dict[str, CrdFiles]]:
    """Return the CRDs of the whole workspace, and for each cluster these together with its own."""
    shared = _read_crd_texts(root, SCHEMAS_FOLDER, findings)
    own = {name: _read_crd_texts(root, f"overlays/{name}/{SCHEMAS_FOLDER}", findings) for name in clusters}
    return CrdFiles(shared), {name: CrdFiles((*shared, *texts)) for name, texts in own.items()}


def _read_crd_texts(root: Path, folder: str, findings: list[Finding]) -> tuple[str, ...]:
    texts: list[str] = []
    for path in sorted((root / folder).glob("*/*.json")):
        try:
            text = path.read_text(encoding="utf-8")
            read_crd(text)
            texts.append(text)
        except (OSError, ValueError) as bad:
            where = Location(path.relative_to(root).as_posix(), 1, 1)
            message = f"the file holds no CRD: {_describe_crd_read_error(bad)}"
            findings.append(Finding(CRD_UNREADABLE, where, message, IMPORT_AGAIN))
    return tuple(texts)


def _describe_crd_read_error(bad: OSError | ValueError) -> str:
    if isinstance(bad, OSError):
        return f"it cannot be read: {bad.strerror}"
    return "it is not UTF-8" if isinstance(bad, UnicodeDecodeError) else str(bad)
