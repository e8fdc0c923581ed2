"""A scan for secrets in the files of a workspace, and in unmanaged files in rendered/.

What is rendered comes from these files alone, so a file that gangplan rendered holds no secret that they do
not.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

from gangplan.emit import read_header_source
from gangplan.findings import Finding, Location, reword_finding
from gangplan.rules.security import SECRET_LITERAL, SECRET_SUSPECTED
from gangplan.source import MAX_DOCUMENT_BYTES
from gangplan.spec.job import TrainingJob
from gangplan.validate.secrets import (
    RANDOM_TEXT,
    Secret,
    extract_secret_text,
    find_secrets,
    is_secret_manifest,
    mask_secrets,
)
from gangplan.workspace import OVERLAYS, RENDERED, SPECS

FOLDERS = (SPECS, OVERLAYS, "images", "jobtemplates", "policies/waivers")


def scan_workspace_for_secrets(
    root: Path,
    covers: Callable[[str], bool],
    clean: Collection[str] = (),
    ours: Collection[str] = (),
    known: Collection[str] | None = None,
) -> tuple[list[Finding], set[str]]:
    """Return one error per secret, at its line and column, and the secrets themselves (for
    `hide_found_secrets`).

    `covers` selects files by their path from the root. Files that cannot be read are left out, and so are
    those in `clean` folders, which hold no secret. Files in `ours` are known to be gangplan's, and are not
    opened to check that. `known` are all folders, if they were listed already.
    """
    findings, values = [], set()
    for file, text in _read_texts_scanned_for_secrets(root, FOLDERS, clean, (), known):
        if covers(file):
            for secret in find_secrets(text):
                findings.append(_build_secret_finding(file, text, secret))
                values.add(extract_secret_text(text, secret))
    for file, text in _read_texts_scanned_for_secrets(root, (RENDERED,), clean, ours, known):
        for secret in find_secrets(text):
            findings.append(_build_secret_finding(file, text, secret))
        if is_secret_manifest(text):
            message = (
                "a Secret is in Git: base64 is not encryption,"
                " and everybody who can read the repository can read it"
            )
            help = "Remove the file, revoke what it holds, and declare the secret in team.yaml."
            findings.append(Finding(SECRET_LITERAL, Location(file, 1, 1), message, help))
    return findings, values


def hide_found_secrets(findings: Iterable[Finding], values: Collection[str]) -> list[Finding]:
    """Hide every secret in the texts of the findings."""
    if not values:
        return list(findings)
    out = []
    for finding in findings:
        fix = finding.fix
        if fix is not None and any(value in fix.replacement or value in fix.why for value in values):
            fix = None  # it would show the secret, and no spelling makes a secret right
        silent = reword_finding(finding, lambda text: mask_secrets(text, values))
        out.append(replace(silent, object_ref=finding.object_ref, fix=fix))
    return out


def drop_secret_repeats(findings: Iterable[Finding], secrets: Iterable[Finding]) -> list[Finding]:
    """Drop findings of policies about a secret that was already found at the same place."""
    places = {one.where for one in secrets}
    return [one for one in findings if one.where not in places or SECRET_LITERAL not in one.rule.told_by]


def _build_secret_finding(file: str, text: str, secret: Secret) -> Finding:
    line, column = secret.place(text)
    at = Location(file, line, column)
    holder = f"{secret.name} holds" if secret.name else "this is"
    help = (
        "Revoke it, and take it from a secret:"
        f" secrets: {{env: {{{_suggest_variable_for_found_secret(secret)}: SECRET/KEY}}}}"
        if file.startswith(f"{SPECS}/")
        else "Revoke it, and refer to a Secret of the cluster by its name"
    )
    message = f"{holder} {secret.what}"
    if secret.what == RANDOM_TEXT:
        return Finding(SECRET_SUSPECTED, at, message, f"{help}; leave it if it is public.")
    return Finding(SECRET_LITERAL, at, message, f"{help}.")


# The variable in which the issuer's programs look for such a secret.
_VARIABLES = {
    "an AWS access key": "AWS_ACCESS_KEY_ID",
    "a GitHub token": "GITHUB_TOKEN",
    "a GitLab token": "GITLAB_TOKEN",
    "a Hugging Face token": "HF_TOKEN",
    "a Slack token": "SLACK_TOKEN",
    "an npm token": "NPM_TOKEN",
}


def _suggest_variable_for_found_secret(secret: Secret) -> str:
    """Return a variable for the secret: its name in capitals (DB_PASSWORD of --db-password), else its
    issuer's.

    A field of a spec such as command is not the name of a variable.
    """
    name = secret.name.strip("-").replace("-", "_").replace(".", "_")
    is_field = name in {field.alias or key for key, field in TrainingJob.model_fields.items()} | {"value"}
    if name.isidentifier() and not is_field:
        return name if secret.name == name else name.upper()
    return _VARIABLES.get(secret.what, "NAME")


def _walk_scanned_folder(root: Path, folder: str) -> Iterator[tuple[str, list[str]]]:
    """Yield a folder and all below it, in order: its path, and the names of its files."""
    for parent, names, files in os.walk(root / folder):
        names.sort()
        yield parent, files


def _walk_known_scanned_folders(
    root: Path, folders: Collection[str], clean: Collection[str]
) -> Iterator[tuple[str, list[str]]]:
    """Yield the same for known folders, without those that are clean."""
    for inside in sorted(folders):
        if inside not in clean:
            for parent, _, files in islice(os.walk(root / inside), 1):
                yield parent, files


def _read_texts_scanned_for_secrets(
    root: Path,
    folders: Iterable[str],
    clean: Collection[str],
    ours: Collection[str],
    known: Collection[str] | None = None,
) -> Iterator[tuple[str, str]]:
    """Yield path and text of every file that is text, except links and files that gangplan rendered.

    `known` are all folders, if they were listed already.
    """
    for folder in folders:
        below = known and [path for path in known if path == folder or path.startswith(f"{folder}/")]
        for parent, files in (
            _walk_scanned_folder(root, folder)
            if below is None
            else _walk_known_scanned_folders(root, below, clean)
        ):
            inside = parent[len(str(root)) + 1 :].replace(os.sep, "/")
            if inside in clean:
                continue
            for name in sorted(files):
                if f"{inside}/{name}" in ours:
                    continue
                path = Path(parent) / name
                is_ours = folder == RENDERED and read_header_source(path) is not None
                if is_ours or path.is_symlink() or not path.is_file():
                    continue
                try:
                    if path.stat().st_size > MAX_DOCUMENT_BYTES:
                        continue
                    data = path.read_bytes()
                except OSError:
                    continue  # reported where the file is read
                if b"\0" not in data:
                    yield path.relative_to(root).as_posix(), data.decode("utf-8", "replace")
