"""Inline CSI volumes of a source become volumes that the platform lists."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.imports.sources import PYTORCHJOB, imported
from tests.imports.test_platform import on, suggested
from tests.workspaces import WIDE_CLUSTER

CSI = "csi: {driver: secrets-store.csi.k8s.io, readOnly: true, volumeAttributes: {secretProviderClass: nlp-vault}}"
LISTED = WIDE_CLUSTER.replace(
    "topology:",
    "volumes:\n"
    "  other: {driver: secrets-store.csi.k8s.io, attributes: {secretProviderClass: cv-vault}}\n"
    "  vault: {driver: secrets-store.csi.k8s.io, attributes: {secretProviderClass: nlp-vault}, readOnly: true}\n"
    "topology:",
    1,
)
SETTABLE = LISTED.replace("cv-vault}}", "cv-vault}, settable: [secretProviderClass]}").replace(
    "  vault: {driver: secrets-store.csi.k8s.io, attributes: {secretProviderClass: nlp-vault}, readOnly: true}\n",
    "",
)


def source() -> str:
    """Return the job with one more volume in each pod."""
    mount, volume = "- {name: images, mountPath: /images}", "- {name: shm, emptyDir: {medium: Memory}}"
    text = PYTORCHJOB.replace(mount, f"{mount}\n            - {{name: keys, mountPath: /mnt/keys}}")
    return text.replace(volume, f"{volume}\n          - {{name: keys, {CSI}}}")


def test_an_unlisted_driver_is_suggested(tmp_path: Path) -> None:
    batch = imported(tmp_path, "pytorchjob", source())
    (one,) = batch.imported
    assert one.draft.values["volumes"] == {"keys": "/mnt/keys"}
    assert suggested(batch) == {
        "volumes.keys": {
            "driver": "secrets-store.csi.k8s.io",
            "attributes": {"secretProviderClass": "nlp-vault"},
            "readOnly": True,
        }
    }
    assert one.is_right


def test_a_listed_volume_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on(monkeypatch, LISTED)
    batch = imported(tmp_path, "pytorchjob", source())
    (one,) = batch.imported
    assert one.draft.values["volumes"] == {"vault": "/mnt/keys"}
    assert suggested(batch) == {}


def test_a_settable_attribute_is_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on(monkeypatch, SETTABLE)
    (one,) = imported(tmp_path, "pytorchjob", source()).imported
    own = {"path": "/mnt/keys", "attributes": {"secretProviderClass": "nlp-vault"}}
    assert one.draft.values["volumes"] == {"other": own}
