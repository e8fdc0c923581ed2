"""Compare an image with its catalog entry, and report differences at the catalog's lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase

from gangplan.findings import Finding, Location
from gangplan.model.gpu_drivers import parse_major_minor
from gangplan.oci.image import InspectedImage
from gangplan.oci.inside import ImageContents
from gangplan.oci.layers import File, ImageFiles
from gangplan.records import dataclass
from gangplan.rules.images import (
    IMAGE_DIFFERS,
    IMAGE_HOLDS_KEY,
    IMAGE_UNREAD,
    IMAGE_USER_UNKNOWN,
    SSHD_SETTING,
)
from gangplan.rules.model import Rule
from gangplan.source import Document
from gangplan.spec.catalog import Image

_SETTING = re.compile(r"^[ \t]*(\w+)[ \t=]+\"?([^\s\"#]+)", re.MULTILINE)
# What sshd reads unless -f names another file.
_SSHD_CONFIG = "/etc/ssh/sshd_config"
# Each is looked for among all files of the image, whose maker decides how many there are.
_MOST_INCLUDES = 32
_BY_MPI = ("mpi", "horovod", "deepspeed")


def list_catalog_files_in_image(entry: Image | None) -> frozenset[str]:
    """Return the files that the catalog names, by their path from the root."""
    if entry is None:
        return frozenset()
    setup = entry.mpi.setup if entry.mpi else None
    named = (entry.ssh.server, entry.ssh.config, setup or "")
    return frozenset(path.strip("/") for path in named if path)


def compare_with_catalog(
    name: str, entry: Image, looked: InspectedImage, document: Document
) -> list[Finding]:
    """Return a finding for each difference between an image and its catalog entry."""
    return list(_Comparison(name, entry, looked, document).findings())


@dataclass(frozen=True, slots=True)
class _Comparison:
    name: str
    entry: Image
    looked: InspectedImage
    document: Document

    def findings(self) -> Iterator[Finding]:
        """Yield all findings."""
        yield from self._config()
        files, contents = self.looked.files, self.looked.contents
        if files is None or contents is None:
            return
        for reason in files.unread:
            yield self._at((), IMAGE_UNREAD, f"image '{self.name}' was looked into in part: {reason}", "")
        for path in files.outside[:3]:
            message = (
                f"image '{self.name}' has an entry that leads out of it, which was left out: {path[:200]!a}"
            )
            yield self._at((), IMAGE_UNREAD, message, "Build it again from layers that you trust.")
        yield from self._keys(files)
        if files.unread:
            return  # what is missing may be in a layer that could not be read
        yield from self._mpi(contents)
        yield from self._ssh(files)
        if self.entry.framework in _BY_MPI:
            yield from self._logins(files)
        yield from self._user(contents)
        yield from self._platform(contents)

    def _config(self) -> Iterator[Finding]:
        has = self.looked.architectures
        missing = [one for one in self.entry.architectures if one not in has]
        if missing:
            yield self._differs("architectures", f"is for {', '.join(has)}", " and ".join(missing))
        user = self.looked.config.user
        uid = _read_uid_of_image_user(user, self.looked.files)
        if uid is not None and uid != self.entry.user.uid:
            yield self._differs(("user", "uid"), f"has User {user[:40]!a}", str(self.entry.user.uid))
        labels = self.looked.config.labels
        for field, key in (("licence", "org.opencontainers.image.licenses"),):
            stated, label = getattr(self.entry, field), labels.get(key)
            if stated and label and stated != label:
                yield self._differs(field, f"says of itself {label[:200]!a} ({key})", str(stated))

    def _keys(self, files: ImageFiles) -> Iterator[Finding]:
        for number, path in files.keys:
            message = f"image '{self.name}' has the private key /{path} in layer {number}"
            help = "Build it without: a later layer that removes a file only hides it. Then make new keys."
            yield self._at((), IMAGE_HOLDS_KEY, message, help)

    def _mpi(self, contents: ImageContents) -> Iterator[Finding]:
        stated, found = self.entry.mpi, contents.mpis
        if stated is None:
            if found and self.entry.framework not in _BY_MPI:
                return  # many images contain an unused MPI
            if found:
                yield self._differs("mpi", f"has {found[0].family} {found[0].version}".rstrip(), "no mpi")
            return
        own = [one for one in found if one.family == stated.implementation]
        if not own:
            has = ", ".join(dict.fromkeys(one.family for one in found)) or "none of its files"
            if found or not contents.has_libmpi:
                yield self._differs(("mpi", "implementation"), f"has {has}", stated.implementation)
            return
        versions = [one for one in own if one.version]
        if versions and not any(_matches_stated_version(one.version, stated.version) for one in versions):
            has = f"has {stated.implementation} {versions[0].version} (/{versions[0].by})"
            yield self._differs(("mpi", "version"), has, stated.version)
        setup = stated.setup
        if setup and self.looked.files is not None and self.looked.files.find(setup) is None:
            yield self._differs(("mpi", "setup"), "has no such file", setup)

    def _ssh(self, files: ImageFiles) -> Iterator[Finding]:
        if self.entry.framework not in _BY_MPI:
            return
        ssh = self.entry.ssh
        if files.find(ssh.server) is None:
            yield self._differs(("ssh", "server"), "has no such file", ssh.server)
        config = files.find(ssh.config)
        if config is None:
            yield self._differs(("ssh", "config"), "has no such file", ssh.config)
            return
        settings = _read_sshd_settings_in_image(files, config)
        if "port" in settings and settings["port"] != str(ssh.port):
            yield self._differs(
                ("ssh", "port"), f"has Port {settings['port'][:20]} in {ssh.config}", str(ssh.port)
            )

    def _logins(self, files: ImageFiles) -> Iterator[Finding]:
        """Yield settings that let root or passwords in, of the runs' configuration and of sshd's default."""
        found = {path: files.find(path) for path in (self.entry.ssh.config, _SSHD_CONFIG)}
        for path, config in found.items():
            if config is None:
                continue
            settings = _read_sshd_settings_in_image(files, config)
            for name in ("permitrootlogin", "passwordauthentication"):
                if settings.get(name, "no").lower() != "no":
                    message = f"image '{self.name}' has {name} {settings[name][:40]} in {path}"
                    help = f"Write {name} no, and build it again."
                    yield self._at(("ssh", "config"), SSHD_SETTING, message, help)

    def _user(self, contents: ImageContents) -> Iterator[Finding]:
        uid = self.entry.user.uid
        if uid not in contents.users and self.entry.framework in _BY_MPI:
            message = f"image '{self.name}' has no user {uid} in /etc/passwd, as whom its pods run"
            help = "Add it to the image (useradd -u), or correct user.uid."
            yield self._at(("user", "uid"), IMAGE_USER_UNKNOWN, message, help)

    def _platform(self, contents: ImageContents) -> Iterator[Finding]:
        for field in ("cuda", "rocm"):
            stated, has = getattr(self.entry, field), getattr(contents, field)
            if stated and has and parse_major_minor(stated) != parse_major_minor(has):
                yield self._differs(field, f"has {field.upper()} {has}", stated)
            elif has and not stated:
                yield self._differs(field, f"has {field.upper()} {has}", f"no {field}")
        if self.entry.cuda_compat and not contents.has_compat:
            yield self._differs("cudaCompat", "has no /usr/local/cuda/compat", "true")
        stated, has = self.entry.framework_version, contents.frameworks.get(self.entry.framework)
        if stated and has and not _matches_stated_version(has.partition("+")[0], stated):
            yield self._differs("frameworkVersion", f"has {self.entry.framework} {has}", stated)

    def _differs(self, path: str | tuple[str, ...], has: str, stated: str) -> Finding:
        parts = (path,) if isinstance(path, str) else path
        message = f"image '{self.name}' {has}, and the catalog says {stated}"
        return self._at(
            parts, IMAGE_DIFFERS, message, f"Correct {'.'.join(parts)} in the catalog, or the image."
        )

    def _at(self, parts: tuple[str, ...], rule: Rule, message: str, help: str) -> Finding:
        return Finding(rule, self._where(parts), message, help)

    def _where(self, parts: tuple[str, ...]) -> Location:
        path = ("images", self.name, *parts)
        value = self.document.value
        for count, part in enumerate(path):
            value = value.get(part) if isinstance(value, dict) else None
            if value is None:
                return self.document.where(path[: max(count, 2)], key=True)
        return self.document.where(path, key=len(parts) == 0)


def _read_uid_of_image_user(user: str, files: ImageFiles | None) -> int | None:
    """Return the number of a configuration's User; None if there is no User, or if its name is unknown."""
    name = user.partition(":")[0]
    if re.fullmatch(r"[+-]?[0-9]{1,10}", name):  # as runc reads it, with Go's strconv.Atoi
        return int(name)
    if name == "root" or user.startswith(":"):
        return 0
    passwd = files.find("/etc/passwd") if files is not None else None
    for line in passwd.content.decode("utf-8", "replace").splitlines() if passwd and name else ():
        parts = line.split(":")
        if parts[0] == name and len(parts) == 7 and re.fullmatch(r"[0-9]{1,10}", parts[2]):
            return int(parts[2])
    return None


def _read_sshd_settings_in_image(files: ImageFiles, config: File) -> dict[str, str]:
    """Return the settings of a configuration of sshd and of the files that it includes (sshd_config(5))."""
    settings: dict[str, str] = {}
    included: set[str] = set()
    for match in _SETTING.finditer(config.content.decode("utf-8", "replace")):
        if match[1].lower() == "include" and len(included) < _MOST_INCLUDES and match[2] not in included:
            included.add(match[2])
            pattern = match[2] if match[2].startswith("/") else f"/etc/ssh/{match[2]}"
            for path in sorted(path for path in files.kept if fnmatchcase(f"/{path}", pattern)):
                for one in _SETTING.finditer(files.kept[path].content.decode("utf-8", "replace")):
                    settings.setdefault(one[1].lower(), one[2])
        settings.setdefault(match[1].lower(), match[2])  # sshd uses the first value
    return settings


def _matches_stated_version(version: str, stated: str) -> bool:
    """Return whether versions agree as far as both are stated: 4.1.8 and 4.1 do, 4.1.8 and 4.1.4 do not."""
    return all(one == other for one, other in zip(version.split("."), stated.split("."), strict=False))
