"""The programs that gangplan uses, their versions, and the archives of their releases.

Versions: `rendered/` is committed, so everyone must render the same bytes; both programs change their output
between minor versions, so one minor version is accepted and one patch version installed.
Checksums: docs/decisions/0003-tools.md names the public source of each.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import field

from gangplan.records import dataclass

_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)")

#: Go's names of processors, by Python's.
_GO_ARCHITECTURES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


@dataclass(frozen=True)
class Archive:
    """A release archive (.tar.gz), trusted only if it has this SHA-256 (64 hexadecimal digits)."""

    url: str
    sha256: str


@dataclass(frozen=True)
class Tool:
    """An external program: its name, and how it is found, checked and installed.

    `version` is installed; any version of the same major.minor is accepted. `package` is the Go package that
    `go install` builds. `variable` is the environment variable that overrides the search.
    """

    name: str
    version: str
    package: str
    variable: str
    version_arguments: tuple[str, ...]
    archives: Mapping[tuple[str, str], Archive] = field(repr=False, compare=False)

    @property
    def line(self) -> str:
        """The accepted versions as people write them: `5.8.x`."""
        return self.version.rsplit(".", 1)[0] + ".x"

    def accepts(self, version: str | None) -> bool:
        """Return whether a version (such as `5.8.0`, `v5.8.0-rc.1`) belongs to the accepted minor version."""
        ours, theirs = _VERSION.search(self.version), _VERSION.search(version or "")
        return bool(ours and theirs and ours.groups()[:2] == theirs.groups()[:2])

    def archive(self) -> Archive | None:
        """Return the release archive for this machine, or None if no checksum is known."""
        return self.archives.get(detect_platform())


def detect_platform() -> tuple[str, str]:
    """Return this machine's operating system and processor in Go's words, such as ("linux", "amd64")."""
    machine = os.uname().machine.lower()
    return sys.platform, _GO_ARCHITECTURES.get(machine, machine)


def parse_tool_version(text: str) -> str | None:
    """Return the first `1.2.3` in a text such as `v5.8.1` or `{Version:kustomize/v4.5.7 ...}`, or None."""
    found = _VERSION.search(text)
    return found.group() if found else None


def _build_kustomize_archive(os_name: str, processor: str, sha256: str) -> Archive:
    base = "https://github.com/kubernetes-sigs/kustomize/releases/download/kustomize%2Fv5.8.1"
    return Archive(f"{base}/kustomize_v5.8.1_{os_name}_{processor}.tar.gz", sha256)


def _build_kubeconform_archive(os_name: str, processor: str, sha256: str) -> Archive:
    base = "https://github.com/yannh/kubeconform/releases/download/v0.7.0"
    return Archive(f"{base}/kubeconform-{os_name}-{processor}.tar.gz", sha256)


KUSTOMIZE_TOOL = Tool(
    name="kustomize",
    version="5.8.1",
    package="sigs.k8s.io/kustomize/kustomize/v5",
    variable="GANGPLAN_KUSTOMIZE",
    version_arguments=("version",),
    archives={
        key: _build_kustomize_archive(*key, sha256)
        for key, sha256 in {
            ("linux", "amd64"): "029a7f0f4e1932c52a0476cf02a0fd855c0bb85694b82c338fc648dcb53a819d",
            ("linux", "arm64"): "0953ea3e476f66d6ddfcd911d750f5167b9365aa9491b2326398e289fef2c142",
            ("darwin", "amd64"): "ee7cf0c1e3592aa7bb66ba82b359933a95e7f2e0b36e5f53ed0a4535b017f2f8",
            ("darwin", "arm64"): "8886f8a78474e608cc81234f729fda188a9767da23e28925802f00ece2bab288",
        }.items()
    },
)

KUBECONFORM_TOOL = Tool(
    name="kubeconform",
    version="0.7.0",
    package="github.com/yannh/kubeconform/cmd/kubeconform",
    variable="GANGPLAN_KUBECONFORM",
    version_arguments=("-v",),
    archives={
        key: _build_kubeconform_archive(*key, sha256)
        for key, sha256 in {
            ("linux", "amd64"): "c31518ddd122663b3f3aa874cfe8178cb0988de944f29c74a0b9260920d115d3",
            ("linux", "arm64"): "cc907ccf9e3c34523f0f32b69745265e0a6908ca85b92f41931d4537860eb83c",
            ("darwin", "amd64"): "c6771cc894d82e1b12f35ee797dcda1f7da6a3787aa30902a15c264056dd40d4",
            ("darwin", "arm64"): "b5d32b2cb77f9c781c976b20a85e2d0bc8f9184d5d1cfe665a2f31a19f99eeb9",
        }.items()
    },
)

PINNED_TOOLS: tuple[Tool, ...] = (KUSTOMIZE_TOOL, KUBECONFORM_TOOL)
