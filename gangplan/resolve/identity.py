"""Who a job is: its names, labels and queue, and what of the spec decides whether it runs."""

from __future__ import annotations

from shlex import quote
from typing import Any

from gangplan.model.backend import TRAINJOB
from gangplan.model.job import Origin
from gangplan.resolve.account import resolve_account
from gangplan.resolve.cloud import own_identity
from gangplan.resolve.context import JobResolution
from gangplan.resolve.platform import resolve_platform
from gangplan.resolve.queue import resolve_queue
from gangplan.rules.core import SPEC_FILE_NAME
from gangplan.spec.namespaces import namespace_of
from gangplan.spec.phrases import as_name
from gangplan.spec.words import DNS_LABEL


def identity(context: JobResolution) -> dict[str, Any]:
    """Names, labels and the cluster's facts."""
    spec, team = context.spec.spec, context.team.spec
    if spec.retired:
        context.origins["retired"] = Origin("spec", context.where("retired"))
    platform = resolve_platform(context.cluster)
    return {
        "name": spec.name or _stem(context),
        "team": context.team.name,
        "namespace": namespace_of(context.cluster.spec, context.team.name, team),
        "source": context.spec.source.file,
        "description": spec.description or "",
        "platform": platform,
        "made_of": spec.backend or next((one.name for one in platform.backends), TRAINJOB.name),
        "labels": tuple(sorted(spec.labels.items())),
        "cost_centre": team.cost_centre or "",
        **resolve_account(context),
        "identity": own_identity(context),
        "spec_hash": context.spec.digest,
        "run": spec.run,
        "is_archived": spec.state == "archived",
        "is_stopped": spec.state == "stopped",
        "is_kept": spec.keep,
        "retired": spec.retired,
        "queue": resolve_queue(context),
        "trial": context.spec.trial,
        "template": context.spec.template,
        "origins": context.origins,
    }


def _stem(context: JobResolution) -> str:
    """The file's name as job name; it must be a DNS label."""
    stem = context.spec.source.stem
    if (
        not stem.isascii()
        or not all(char.isalnum() or char == "-" for char in stem)
        or stem != stem.lower()
        or not stem[:1].isalpha()
        or stem.endswith("-")
    ):
        context.report(
            SPEC_FILE_NAME,
            context.where(),
            f"file name '{stem}' is not a valid job name: use lower-case letters, digits and '-', starting with a letter",
            _renamed(context.spec.source.file, stem),
        )
    return stem


def _renamed(file: str, stem: str) -> str:
    """How to rename a file whose name cannot be a job's; where nothing of it can, what to add."""
    name = as_name(DNS_LABEL, stem)
    if not name:
        return "Rename the file, or add name: to the spec."
    return f"Rename it: git mv {quote(file)} {quote(file.removesuffix(f'{stem}.yaml'))}{name}.yaml; or add name: {name}."
