"""Find downloads that a run cannot make, and packages that are gone when its program starts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from gangplan.findings import Problem
from gangplan.model.job import Job
from gangplan.plan.launchers import is_python, program_name_of, read_script_commands
from gangplan.plan.launchers.prefixes import strip_prefixes
from gangplan.rules.commands import COMMAND_DOWNLOADS, COMMAND_ROOT, PACKAGES_LOST

# The name of a cluster's endpoint that reaches every address (resolve/proxy.py).
_INTERNET = "internet"
# Package managers of systems, which only root may use.
_SYSTEM = ("apt", "apt-get", "dnf", "yum", "microdnf", "apk")
# Programs that fetch packages, with the subcommands that fetch.
_PACKAGES = {
    **dict.fromkeys(("pip", "pip3", "pipx"), ("install", "download", "wheel")),
    **dict.fromkeys(("conda", "mamba", "micromamba"), ("install", "create", "update")),
    **dict.fromkeys(_SYSTEM, ("install", "update", "upgrade", "add")),
    "npm": ("add", "install", "ci"),
    "uv": ("sync", "add"),
    "poetry": ("install", "add"),
    "git": ("clone", "fetch", "pull", "submodule"),
    "hf": ("download",),
    "huggingface-cli": ("download",),
    "kaggle": ("datasets", "competitions"),
    "gdown": (),
    "dvc": ("fetch", "pull", "push"),
    "modelscope": ("download",),
    "wandb": ("agent", "artifact", "login", "sync"),
}
# Programs that read and write object stores, and what names one: s3://bucket, or a remote of rclone.
_STORE_CLIENTS = frozenset({"aws", "azcopy", "gcloud", "gsutil", "rclone", "s3cmd", "s5cmd"})
_STORED = re.compile(r"(?:s3|gs|https)://[^\s$]\S*|(?<![\w./-])[A-Za-z][\w-]*:(?!/)\S*")
# Programs that install packages for what runs later in the same container.
_INSTALLERS = ("pip", "pip3", "conda", "mamba", "micromamba")
# Options that name where packages go.
_INTO = frozenset({"--target", "--prefix", "--root", "-p", "--dest"})
KEPT_PACKAGES = (
    "Put the packages into the image, or into a folder of a claim: --target=/data/packages, with PYTHONPATH."
)
_BY_URL = frozenset({"curl", "wget", "aria2c"})
_URL = re.compile(r"(?:https?|ftp|git|ssh)://([^/\s:@]+@)?(?P<host>[^/\s:?#]+)")
# Options with which nothing is fetched, and options that name the site's own package index.
_LOCAL = frozenset({"--no-index", "--no-deps", "--offline", "--help", "--version"})
_INDEX = re.compile(r"--(?:extra-)?index-url(?:=.*)?|-i|--index(?:=.*)?|--default-index(?:=.*)?")


def check_system_packages(job: Job) -> Iterator[Problem]:
    """Yield the first change of an image's packages: only root may make it, and no run has root."""
    for path, words in _list_programs_started_by_job_command(job.command):
        name = program_name_of(words[0]) if words else ""
        verb = next((word for word in words[1:] if not word.startswith("-")), "")
        if name in _SYSTEM and verb in _PACKAGES[name]:
            message = f"'{name} {verb}' needs root, which no run has: it fails"
            yield Problem(path, message, "Put the packages into the image.", COMMAND_ROOT)
            return


def check_packages_outlive_container(job: Job, what: str) -> Iterator[Problem]:
    """Yield the first installation of packages with which the command of `what` ends.

    What a later program of the same command uses is not lost, nor what is put into a named folder.
    """
    found = list(_list_programs_started_by_job_command(job.command))
    installs = [describe_installation(words) for _, words in found]
    if not installs or not installs[-1]:
        return
    first = max((at for at, one in enumerate(installs) if not one), default=-1) + 1
    message = (
        f"'{installs[first]}' installs into this {what} alone: nothing of it is left when the program starts"
    )
    yield Problem(found[first][0], message, KEPT_PACKAGES, PACKAGES_LOST)


def describe_installation(words: Sequence[str]) -> str:
    """Return the words of an installation into the file system of the container; empty if it is none."""
    if not words:
        return ""
    name, rest = program_name_of(words[0]), list(words[1:])
    if is_python(words[0]) and rest[:2] == ["-m", "pip"]:
        name, rest = rest[1], rest[2:]
    if name == "uv" and rest[:1] == ["pip"]:
        name, rest = "pip", rest[1:]
    verb = next((word for word in rest if not word.startswith("-")), "")
    has_folder = any(word.partition("=")[0] in _INTO or word.startswith("-t") for word in rest)
    return f"{name} {verb}" if name in _INSTALLERS and verb == "install" and not has_folder else ""


def check_command_downloads(job: Job) -> Iterator[Problem]:
    """Yield the first download of a command if the run's policies allow no index, forge or hub.

    gangplan does not know what a cluster's named endpoint leads to: with one, only downloads that name no
    host or index are reported.
    """
    names = {one.name for one in job.egress}
    variables = {one.name.upper() for one in job.env}
    if _INTERNET in names or {"HTTPS_PROXY", "HTTP_PROXY"} & variables:
        return
    for path, words in _list_programs_started_by_job_command(job.command):
        what = _describe_command_download(words, bool(names), variables)
        if what:
            may = f"reaches only {', '.join(sorted(names))}" if names else "reaches no address outside it"
            does = "reads or writes" if program_name_of(words[0]) in _STORE_CLIENTS else "downloads"
            message = f"'{what}' {does}, but the run {may}: it would fail after its wait in the queue"
            help = (
                "Put it into the image, or add network: {egress: [internet]} where the cluster offers that."
            )
            yield Problem(path, message, help, COMMAND_DOWNLOADS)
            return


def _list_programs_started_by_job_command(
    command: tuple[str, ...],
) -> Iterator[tuple[tuple[str | int, ...], Sequence[str]]]:
    """Yield each program that a command starts: the path of its word in the spec, and its words."""
    script, found = read_script_commands(command)
    if script < 0:
        at = strip_prefixes(command).at
        yield ("command", at), command[at:]
    for one in found:
        yield ("command", script), one.texts[strip_prefixes(one.texts).at :]


def _describe_command_download(words: Sequence[str], has_egress: bool, variables: set[str]) -> str:
    """Return the words of a program up to what it downloads; empty if it downloads nothing."""
    if not words:
        return ""
    name, rest = program_name_of(words[0]), [word for word in words[1:] if word]
    shown = [name]
    if is_python(words[0]) and rest[:2] == ["-m", "pip"]:
        name, shown, rest = rest[1], [name, *rest[:2]], rest[2:]
    if name in ("uv", "conda") and rest[:1] in (["pip"], ["env"]):  # treated like pip and conda
        name, shown, rest = {"uv": "pip"}.get(name, name), [name, rest[0]], rest[1:]
    if name in _BY_URL:
        return _describe_curl_or_wget_download(name, rest, has_egress)
    if name in _STORE_CLIENTS:
        return "" if has_egress else _describe_transfer(name, rest, variables)
    plain = [word for word in rest if not word.startswith("-")]
    wanted = _PACKAGES.get(name)
    if wanted is None or (wanted and (not plain or plain[0] not in wanted)):
        return ""
    place = next((found for word in rest if (found := _URL.search(word))), None)
    is_local = name == "git" and plain[0] == "clone" and not place and not any("@" in word for word in plain)
    if is_local or (place and has_egress) or (_LOCAL & set(rest)):
        return ""
    has_index = any(_INDEX.fullmatch(word) for word in rest) or {"PIP_INDEX_URL", "UV_INDEX_URL"} & variables
    if has_index and has_egress:
        return ""
    return " ".join([*shown, *plain[:1]])


def _describe_curl_or_wget_download(name: str, rest: Sequence[str], has_egress: bool) -> str:
    """Return what curl or wget downloads, not counting the pod itself and services of the cluster."""
    for word in rest:
        found = _URL.search(word)
        if found is None or found["host"] in ("localhost", "127.0.0.1") or _is_inside(found["host"]):
            continue
        return "" if has_egress else f"{name} {word[:60]}"
    return ""


def _describe_transfer(name: str, rest: Sequence[str], variables: set[str]) -> str:
    """Return what a client of an object store transfers, if that store is not known to be in the cluster."""
    places = [word for word in rest if not word.startswith("-") and _STORED.fullmatch(word)]
    hosts = (found["host"] for word in rest if (found := _URL.search(word)))
    has_endpoint = any("ENDPOINT" in one or one.startswith("RCLONE_") for one in variables)
    if not places or has_endpoint or any(map(_is_inside, hosts)):
        return ""
    return f"{name} ... {places[0][:60]}"


def _is_inside(host: str) -> bool:
    """Return whether a host name is inside the cluster, or unknown until the script runs."""
    return "$" in host or "." not in host or host.endswith((".svc", ".local", ".internal"))
