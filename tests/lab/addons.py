"""Custom resources whose controllers the lab does not run, but whose objects are rendered.

Their definitions are taken from upstream's Go modules, each checked against the module's checksum, so that
the API server judges alert rules and external secrets by the real schemas and defaults.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from . import assets, folders
from .client import Object
from .go import go


@dataclass(frozen=True)
class Addon:
    """One definition file of one module at one version; ``sum`` is the module's checksum."""

    module: str
    version: str
    sum: str
    file: str


ADDONS = (
    Addon(
        "github.com/prometheus-operator/prometheus-operator",
        "v0.85.0",
        "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s=",
        "example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
    ),
    Addon(
        "github.com/external-secrets/external-secrets",
        "v1.3.2",
        "h1:u2J8RjlHIeF0oZCqtl92adI/uZWUwOesJIDkfql6LqQ=",
        "config/crds/bases/external-secrets.io_externalsecrets.yaml",
    ),
    Addon(
        "k8s.io/autoscaler/cluster-autoscaler/apis",
        "v0.0.0-20240830133931-adfbe7e45277",
        "h1:BibFadVS+A7XR6HMReIuHoY9n8I+8oWR8/4xGgf2BDE=",
        "config/crd/autoscaling.x-k8s.io_provisioningrequests.yaml",
    ),
)


def definitions() -> list[Object]:
    """Return the definitions, which are fetched once and then cached."""
    text = repr(ADDONS).encode()
    kept = folders.cache() / f"addons-{hashlib.sha256(text).hexdigest()[:12]}.json"
    if not kept.is_file():
        found = [item for addon in ADDONS for item in assets.read(file_of(addon).read_text())]
        with tempfile.NamedTemporaryFile("w", dir=kept.parent, delete=False) as aside:
            json.dump(found, aside)
        os.replace(aside.name, kept)
    result: list[Object] = json.loads(kept.read_text())
    return result


def file_of(addon: Addon) -> Path:
    """Return one file of a module that has the pinned checksum."""
    with tempfile.TemporaryDirectory() as empty:
        told = json.loads(
            go("mod", "download", "-json", f"{addon.module}@{addon.version}", folder=Path(empty))
        )
    if told["Sum"] != addon.sum:
        raise RuntimeError(f"{addon.module} {addon.version}: {told['Sum']}")
    return Path(told["Dir"]) / addon.file
