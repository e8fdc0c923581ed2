"""Find passwords, tokens and keys that a Containerfile writes into an image."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gangplan.containerfile.facts import ContainerfileFacts
from gangplan.containerfile.parse import Instruction, split_variables
from gangplan.containerfile.shell import find_ordered_patterns_in_command, hide_text_read_by_instruction
from gangplan.containerfile.told import (
    build_instruction_finding,
    build_lint_finding,
    find_matching_instruction_lines,
)
from gangplan.findings import Finding
from gangplan.model.secret_forms import FORMS
from gangplan.rules.containerfiles import CONTAINERFILE_KEY, CONTAINERFILE_SECRET

_NAME = re.compile(
    r"(?i)(?:^|_)(?:PASSWORD|PASSWD|TOKEN|SECRET|API_?KEY|ACCESS_KEY|PRIVATE_KEY|CREDENTIALS?)(?:_|$)"
)
_PRIVATE_KEY = re.compile(FORMS["a private key"])
# Also tokens that are shorter than today's.
_SECRET = re.compile(
    r"(?i:\bAuthorization:\s*(?:Bearer|Basic)\s+[^$\s'\"]{8,}|https?://[^\s/@:$]+:[^\s/@$]{4,}@)"
    r"|\b(?:hf_[A-Za-z0-9]{20,}|ghp_[A-Za-z0-9]{20,})\b|"
    + "|".join(form for kind, form in FORMS.items() if kind != "a private key")
)
_KEYGEN = re.compile(r"\b(?:ssh-keygen|dropbearkey)\b|\bopenssl\s+(?:genpkey|genrsa|gendsa)\b")
_OPENSSL = re.compile(r"\bopenssl\s+(?:req|ecparam)\b")
_NEW_KEY = re.compile(r"\s-(?:newkey|genkey)\b")
# Debian's package creates host keys at installation (openssh-server.postinst); the RPM package does not.
_APT = re.compile(r"\bapt(?:-get|itude)?\b")
_INSTALL = re.compile(r"\binstall\b")
_SERVER = re.compile(r"\bopenssh-server\b")
_REMOVE = re.compile(r"\brm\b")
_HOST_KEYS = re.compile(r"/etc/ssh/(?:ssh_host_|\*)")
_KEY_FILE = re.compile(
    r"(?:^|/)(?:id_(?:rsa|dsa|ecdsa|ed25519)|ssh_host_\w+_key|[\w.-]+\.(?:pem|key|p12|pfx)|authorized_keys)$"
)
_KEY_FOLDER = re.compile(r"(?:^|/)\.ssh/?$")
# Files of ~/.ssh that hold no key (ssh(1), FILES). Any other name may be a key, and a folder may hold one.
_NO_KEY = re.compile(
    r"(?:^|/)(?:(?:ssh_)?config(?:\.d)?|known_hosts2?|environment|rc|[\w.-]+\.(?:pub|conf))/?$"
)


def check_secrets_in_containerfile(file: str, facts: ContainerfileFacts) -> Iterator[Finding]:
    """Check variables by their names, and all instructions for tokens and passwords by their form."""
    for one in facts.instructions:
        named = list(_list_secret_variables(one)) if one.name in ("ENV", "ARG") else []
        for name in named:
            yield build_instruction_finding(CONTAINERFILE_SECRET, file, one, f"{one.name} {name} has a value")
        if not named:
            what = "the command" if one.name == "RUN" else one.name
            yield from _check_secret_forms(file, one, f"{what} has a secret in it")


def _check_secret_forms(file: str, one: Instruction, says: str) -> Iterator[Finding]:
    yield from find_matching_instruction_lines(CONTAINERFILE_SECRET, file, one, _SECRET, lambda _: says)


def _list_secret_variables(one: Instruction) -> Iterator[str]:
    for name, value in split_variables(one):
        if _NAME.search(name) and value and "$" not in value and not value.startswith("/"):
            yield name


def check_keys_in_containerfile(file: str, facts: ContainerfileFacts) -> Iterator[Finding]:
    """Check for keys that are written, made or copied."""
    for whole in facts.instructions:
        one = hide_text_read_by_instruction(whole) if whole.name == "RUN" else whole
        yield from find_matching_instruction_lines(
            CONTAINERFILE_KEY, file, one, _PRIVATE_KEY, lambda _: "a private key is written into the image"
        )
        if one.name == "RUN":
            yield from _check_keys_made_by_instruction(file, one)
    for copied in facts.copied:
        if _is_key_copied_by_instruction(copied.source, copied.target):
            yield build_instruction_finding(
                CONTAINERFILE_KEY,
                file,
                copied.by,
                f"{copied.source or copied.target} is copied into the image",
            )


def _check_keys_made_by_instruction(file: str, one: Instruction) -> Iterator[Finding]:
    says = "a key is made while the image is built"
    yield from find_matching_instruction_lines(CONTAINERFILE_KEY, file, one, _KEYGEN, lambda _: says)
    for piece in one.pieces:
        for begin, _ in find_ordered_patterns_in_command(piece.text, _OPENSSL, _NEW_KEY):
            yield build_lint_finding(CONTAINERFILE_KEY, file, piece.line, piece.column + begin, says)
    text = one.text
    if any(find_ordered_patterns_in_command(text, _APT, _INSTALL, _SERVER)) and not any(
        find_ordered_patterns_in_command(text, _REMOVE, _HOST_KEYS)
    ):
        yield from find_matching_instruction_lines(
            CONTAINERFILE_KEY,
            file,
            one,
            _SERVER,
            lambda _: (
                "Debian's openssh-server makes host keys as it is installed: remove /etc/ssh/ssh_host_* in this RUN"
            ),
        )


def _is_key_copied_by_instruction(source: str, target: str) -> bool:
    """Return whether a copied file or folder is, or may be, a key of SSH or TLS."""
    if _KEY_FILE.search(source) or _KEY_FILE.search(target) or _KEY_FOLDER.search(source):
        return True
    folder = target.rstrip("/").rpartition("/")[0]
    return bool(_KEY_FOLDER.search(target) or _KEY_FOLDER.search(folder)) and not (
        _NO_KEY.search(source) or _NO_KEY.search(target)
    )
