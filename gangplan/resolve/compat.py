"""Which versions work together. Adding a version is adding data here."""

from __future__ import annotations

from dataclasses import dataclass

from gangplan.findings import Finding, error
from gangplan.model.job import Platform
from gangplan.workspace import ClusterFile

# Trainer lines whose API gangplan knows, and the Kueue lines that write the field each one has:
# Kueue up to 0.16 writes podTemplateOverrides (Trainer 2.1), from 0.17 runtimePatches (Trainer 2.2+).
# A wrong pair is admitted and then stays suspended for ever (kueue#11931).
KUEUE_FOR_TRAINER: dict[str, tuple[str, ...]] = {
    "2.1": ("0.15", "0.16"),
    "2.2": ("0.17", "0.18", "0.19"),
    "2.3": ("0.17", "0.18", "0.19"),
}
KUBERNETES = tuple(f"1.{minor}" for minor in range(30, 38))


@dataclass(frozen=True, slots=True)
class _Check:
    """One version of the file held against what is supported."""

    key: str
    name: str
    line: str
    supported: tuple[str, ...]


def check_versions(cluster: ClusterFile, platform: Platform) -> list[Finding]:
    """Findings for versions that gangplan does not know, and for pairs that do not work together."""
    checks = [
        _Check("kubernetes", "Kubernetes", platform.kubernetes.line, KUBERNETES),
        _Check("trainer", "Trainer", platform.trainer.line, tuple(KUEUE_FOR_TRAINER)),
    ]
    pairs = KUEUE_FOR_TRAINER.get(platform.trainer.line, ())
    found = [_unsupported(cluster, check) for check in checks if check.line not in check.supported]
    if platform.kueue and pairs and platform.kueue.line not in pairs:
        where = cluster.document.where(("versions", "kueue"))
        message = (
            f"Kueue {platform.kueue} and Trainer {platform.trainer} do not work together: "
            "runs would be admitted and stay suspended for ever"
        )
        found.append(
            error(
                "version-pair",
                where,
                message,
                f"With Trainer {platform.trainer.line} use Kueue {' or '.join(pairs)}.",
            )
        )
    if cluster.spec.gang == "kueue" and platform.kueue is None:
        where = cluster.document.where(("versions",))
        found.append(
            error(
                "gang-without-kueue",
                where,
                "gang is kueue, but versions.kueue is missing",
                "Add versions.kueue, or set gang: none on a dev cluster.",
            )
        )
    if cluster.spec.gang == "none" and cluster.spec.environment == "prod":
        where = cluster.document.where(("gang",))
        found.append(
            error(
                "gang-none-in-prod",
                where,
                "gang: none lets two runs block each other for ever; it is not allowed where environment is prod",
                "Use gang: kueue, or environment: dev.",
            )
        )
    return found


def _unsupported(cluster: ClusterFile, check: _Check) -> Finding:
    where = cluster.document.where(("versions", check.key))
    message = f"{check.name} {check.line} is not a version that gangplan knows"
    return error("version-unsupported", where, message, f"Supported: {', '.join(check.supported)}.")
