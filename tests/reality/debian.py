"""sshd and nft: the machine's own, or else Debian's packages unpacked into the cache (nothing is
installed)."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from functools import cache, partial
from pathlib import Path

from gangplan.tools.provision import is_offline
from tests.reality.families import UnavailableError, fetched, folder

PACKAGES = ("openssh-server", "openssh-client", "nftables")
PROGRAMS = ("sshd", "ssh", "nft")
_TIMEOUT_S = 120


@cache
def layers() -> dict[str, Path]:
    """Return the programs that the machine lacks, as a tree to put above `/usr`; empty if it has them all.

    Raises UnavailableError where the tree is unavailable.
    """
    if isinstance(wanted := _wanted(), str):
        raise UnavailableError(wanted)
    if not wanted:
        return {}
    key = hashlib.sha256(repr(wanted).encode()).hexdigest()[:12]
    names = [f"{name}={version}" for name, version in wanted]
    return {"/usr": fetched(folder() / f"debian-{key}", partial(_unpack, names)) / "usr"}


@cache
def _wanted() -> list[tuple[str, str]] | str:
    """Return Debian packages with their versions, or why they cannot be determined."""
    try:
        return _packages()
    except UnavailableError as error:
        return str(error)


def _packages() -> list[tuple[str, str]]:
    path = f"{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin:/sbin"
    if all(shutil.which(program, path=path) for program in PROGRAMS):
        return []
    if is_offline():
        raise UnavailableError("sshd or nft is not installed, and GANGPLAN_OFFLINE forbids to fetch them")
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise UnavailableError("sshd or nft is not installed, and this is no Debian")
    would = _apt("-s", "-qq", "--no-install-recommends", "install", *PACKAGES).stdout
    wanted = sorted(re.findall(r"^Inst (\S+) (?:\[\S+\] )?\((\S+)", would, re.MULTILINE))
    if not wanted:
        raise UnavailableError("sshd or nft is not installed, and apt-get knows no package of it")
    return wanted


def _apt(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run apt-get, which checks the signatures of what it fetches; raise UnavailableError if it fails."""
    try:
        done = subprocess.run(
            ["apt-get", *words],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
            cwd=cwd,
            env={**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"},
        )
    except subprocess.TimeoutExpired as error:
        raise UnavailableError(f"apt-get took more than {_TIMEOUT_S} s") from error
    if done.returncode:
        raise UnavailableError(f"apt-get {words[0]}: {done.stderr.strip()[-300:]}")
    return done


def _unpack(packages: list[str], target: Path) -> None:
    fresh = target.with_name(target.name + ".new")
    shutil.rmtree(fresh, ignore_errors=True)
    (fresh / "archives").mkdir(parents=True)
    _apt("download", "-qq", *packages, cwd=fresh / "archives")
    for archive in sorted((fresh / "archives").glob("*.deb")):
        subprocess.run(["dpkg-deb", "-x", archive, fresh / "tree"], check=True, timeout=_TIMEOUT_S)
    shutil.rmtree(fresh / "archives")
    _merge_usr(fresh / "tree")
    (fresh / "tree").rename(target)
    shutil.rmtree(fresh)


def _merge_usr(tree: Path) -> None:
    """Move /lib, /bin, /sbin below /usr, where today's Debian has links: a layer must not hide the links."""
    for name in ("lib", "bin", "sbin"):
        if (tree / name).is_dir() and not (tree / name).is_symlink():
            shutil.copytree(tree / name, tree / "usr" / name, dirs_exist_ok=True, symlinks=True)
            shutil.rmtree(tree / name)


@cache
def unpacked(*names: str) -> Path:
    """Return packages without dependencies, as a tree in the cache; nothing is installed.

    Raises UnavailableError where they cannot be fetched.
    """
    if is_offline() or shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise UnavailableError(f"{names[0]} is not installed, and cannot be fetched from Debian here")
    return fetched(folder() / f"debian-{'-'.join(names)}", partial(_unpack, list(names)))
