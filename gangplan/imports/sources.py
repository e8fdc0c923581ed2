"""Find objects of one kind in files and folders, each with its account and comments."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gangplan.errors import UserError
from gangplan.findings import Finding, Location
from gangplan.imports.account import Account, SourceNode
from gangplan.imports.comments import Comments
from gangplan.model.backend import RUNTIME_KINDS
from gangplan.model.kinds import CLAIM_TEMPLATE_KIND
from gangplan.records import dataclass
from gangplan.rules.imports import IMPORT_SOURCE, IMPORT_TEMPLATE
from gangplan.source import Document, FileLimits, load_all_documents
from gangplan.spec.near import suggest_nearest

_YAML = (".yaml", ".yml", ".json")
_LIMITS = FileLimits(max_bytes=4 << 20, max_depth=64, max_entries=200_000)
_MOST_FILES = 5000
# The name of a source that is a value, in place of its file.
GIVEN = "source"
# Templates have forms that no shell has: ${BUILD:image}, ${POOL,default}.
_VARIABLE = re.compile(
    r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?:(?::?-|[:,](?=[A-Za-z./]))([^{}]*))?\}|\$([A-Z_][A-Z0-9_]*)"
)
# What a value of --set fills in: also names in small letters, which nothing else takes for blanks.
_FILLED = re.compile(_VARIABLE.pattern.replace("([A-Z_][A-Z0-9_]*)", "([A-Za-z_][A-Za-z0-9_]*)"))
_HELM = re.compile(r"(?<!\$)\{\{.*?\}\}")  # Azure ML's own expressions are ${{...}}
# What Jinja fills in, and a value of --set can.
_NAMED = re.compile(r"(?<!\$)\{\{-? *([A-Za-z_][A-Za-z0-9_]*) *-?\}\}")
# What a reader of a published manifest has to replace: <account>, REPLACE_WITH_YOUR_CLAIM, CHANGE_ME.
_WORDS = r"(?<![\w$])(?<!\$\{)((?:REPLACE_WITH|YOUR)[_-][A-Z0-9_-]*[A-Z0-9]|CHANGE[_-]?ME(?!-?\w)|your-(?:registry|image|repo|repository|project|account|docker-?hub|username)(?!-))(?!\w)"
_BLANK = re.compile(rf"<([A-Za-z][A-Za-z0-9_ .-]*)>|{_WORDS}")
# In commands and variables, where a shell may redirect or assign.
_FREE_BLANK = re.compile(rf"\A<([A-Za-z][A-Za-z0-9_ .-]*)>\Z|{_WORDS}(?!=)")
# Objects that jobs refer to and that usually have a separate file.
_SHARED = frozenset({*RUNTIME_KINDS, "PersistentVolumeClaim", CLAIM_TEMPLATE_KIND})
# Fields below which a dollar sign belongs to a shell or the kubelet.
_FREE = frozenset(
    {
        *("command", "args", "annotations", "data", "env", "entry_point"),
        *("ContainerEntrypoint", "ContainerArguments", "Environment", "HyperParameters"),  # SageMaker
        "environment_variables",  # Azure ML
    }
)

_OF_SHELL = _FREE - {"annotations", "data"}


@dataclass(frozen=True, slots=True)
class OtherObject:
    """An object of any kind that came with a source."""

    value: Mapping[str, Any]
    document: Document
    base: tuple[str | int, ...]

    def account(self) -> Account:
        """Return a separate account, for a source that consists of several objects."""
        return Account.of(self.document, self.base)


@dataclass(frozen=True, slots=True)
class SourceObject:
    """An object of a source.

    `others` are all objects of its file, then runtimes, claims and templates of claims of the other files.
    """

    account: Account
    value: Mapping[str, Any]
    comments: Comments
    others: Sequence[OtherObject] = ()


def list_files_to_import(named: Sequence[Path], suffixes: Sequence[str] = _YAML) -> list[Path]:
    """Return files that are named, and files in named folders. Raises UserError for what does not exist."""
    found: list[Path] = []
    for path in named:
        if path.is_dir():
            inside = [one for one in sorted(path.rglob("*")) if one.is_file() and not one.is_symlink()]
            found += [one for one in inside if one.suffix.lower() in suffixes and not _is_hidden(one, path)]
        elif path.is_file():
            found.append(path)
        else:
            raise UserError(f"{path}: there is no such file or folder", "Name a file or a folder to import.")
    if len(found) > _MOST_FILES:
        raise UserError(f"{len(found)} files are too many for one import", "Name the folders one by one.")
    return list(dict.fromkeys(found))


def _is_hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(folder).parts)


def read_importable_objects_from_files(
    files: Sequence[Path], takes: Callable[[Mapping[str, Any]], bool], filled: Mapping[str, str]
) -> tuple[list[SourceObject], list[Finding]]:
    """Return the objects that the reader takes, in the order of the files.

    `filled` are the values of `--set`. A file that is not YAML is reported; files without an object of the
    kind are skipped.
    """
    found: list[SourceObject] = []
    findings: list[Finding] = []
    shared: list[OtherObject] = []
    for path in files:
        try:
            data = path.read_bytes()
        except OSError as error:
            findings.append(
                Finding(IMPORT_SOURCE, Location(str(path)), f"it cannot be read: {error.strerror}")
            )
            continue
        text = fill_envsubst_blanks(data.decode("utf-8", "surrogateescape"), filled)
        if path.suffix.lower() == ".json":
            text = text.replace("\t", " ")  # YAML allows no tabs there, and strings of JSON have none
        documents, wrong = load_all_documents(
            text.encode("utf-8", "surrogateescape"), path.as_posix(), _LIMITS
        )
        findings += [_explain_blank_in_braces(one, text) for one in wrong]
        every = [one for document in documents for one in _iterate_source_objects_in_document(document, ())]
        own = [OtherObject(value, document, base) for document, base, value in every]
        shared += [one for one in own if one.value.get("kind") in _SHARED]
        for document, base, value in every:
            if takes(value):
                account = Account.of(document, base)
                found.append(SourceObject(account, value, Comments(text, document, base), own))
    if len(files) > 1 and shared:
        found = [replace(one, others=[*one.others, *shared]) for one in found]
    return found, findings


def _explain_blank_in_braces(wrong: Finding, text: str) -> Finding:
    """Return the finding about a line that is not YAML, or one about the blank in braces that it has."""
    lines = text.splitlines()
    line = lines[wrong.where.line - 1] if 0 < wrong.where.line <= len(lines) else ""
    found = _NAMED.search(line)
    if found is None:
        return wrong
    message, help = f"nothing has filled in {found[0]}", f"Give its value: --set {found[1]}=VALUE."
    return Finding(IMPORT_TEMPLATE, wrong.where, message, help)


def read_importable_objects_from_value(
    value: Mapping[str, Any], takes: Callable[[Mapping[str, Any]], bool]
) -> list[SourceObject]:
    """Return the objects that the reader takes of a value, which is written as JSON to give it lines.

    What JSON does not have, such as the dates in answers of SageMaker, becomes text.
    """
    text = json.dumps(dict(value), indent=2, ensure_ascii=False, default=str) + "\n"
    documents, _ = load_all_documents(text.encode("utf-8", "surrogatepass"), GIVEN, _LIMITS)
    every = [one for document in documents for one in _iterate_source_objects_in_document(document, ())]
    others = [OtherObject(one, document, base) for document, base, one in every]
    return [
        SourceObject(Account.of(document, base), one, Comments(text, document, base), others)
        for document, base, one in every
        if takes(one)
    ]


def _iterate_source_objects_in_document(
    document: Document, base: tuple[str | int, ...]
) -> Iterator[tuple[Document, tuple[str | int, ...], Any]]:
    """Yield the object of a document, or those of a List in it."""
    value = document.value
    for part in base:
        value = value[part]
    if not isinstance(value, dict):
        return
    items = value.get("items")
    if str(value.get("kind", "")).endswith("List") and isinstance(items, list):
        for index in range(len(items)):
            yield from _iterate_source_objects_in_document(document, (*base, "items", index))
        return
    yield document, base, value


def fill_envsubst_blanks(text: str, filled: Mapping[str, str]) -> str:
    """Fill in `${NAME}` and `$NAME` of the given names, as envsubst does, and blanks such as `<NAME>`."""
    if not filled:
        return text
    text = _FILLED.sub(lambda found: filled.get(found[1] or found[3], found[0]), text)
    text = _NAMED.sub(lambda found: filled.get(found[1], found[0]), text)
    return _BLANK.sub(lambda found: filled.get(found[1] or found[2], found[0]), text)


def refuse_unread_values(files: Sequence[Path], filled: Mapping[str, str]) -> None:
    """Raise UserError for a value of `--set` whose name is in no file: it is misspelled, or of another source."""
    named = [name for name in filled if not name.isdigit()]  # scripts have other ways to read arguments
    texts = (
        [path.read_text("utf-8", "replace") for path in files if os.access(path, os.R_OK)] if named else []
    )
    for name in named:
        whole = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
        if texts and not any(whole.search(text) for text in texts):
            blanks = [
                one for text in texts for like in (_FILLED, _NAMED, _BLANK) for one in like.finditer(text)
            ]
            known = {one[1] or one[one.re.groups] for one in blanks}
            place = "the source" if len(texts) == 1 else "the sources"
            raise UserError(
                f"--set {name}={filled[name]}: nothing in {place} reads {name}",
                suggest_nearest(name, known) if known else "Leave the flag out.",
            )


def find_unfilled_source_values(
    account: Account, has_image: bool = False, *, is_mapped: bool = False
) -> Iterator[Finding]:
    """Yield findings for values that are still to be filled in, unless a shell or the kubelet expands them.

    With `has_image`, images are skipped, because the user names another one; with `is_mapped`, what no spec has.
    """
    for entry in account.entries():
        if is_mapped and entry.state != "mapped":
            continue
        is_image = entry.path[-1:] == ("image",)
        if is_image and has_image:
            continue
        if not isinstance(entry.value, str) or _FREE & {str(part) for part in entry.path}:
            continue
        named = list(_NAMED.finditer(entry.value))
        variables = [*_VARIABLE.finditer(entry.value), *_BLANK.finditer(entry.value), *named]
        helm = None if named else _HELM.search(entry.value)
        if not variables and helm is None:
            continue
        names = list(
            dict.fromkeys(
                next(name for name in (*found.groups()[:1], *found.groups()[-1:]) if name)
                for found in variables
            )
        )
        flags = " ".join(f"--set {shlex.quote(f'{name}=VALUE')}" for name in names)
        help = f"Give its value: {flags}" if names else "Render the template first (helm template)"
        help += "; or name an image of the catalog: --image NAME." if is_image else "."
        what = " and ".join(dict.fromkeys(found[0] for found in variables)) or (helm[0] if helm else "")
        yield Finding(IMPORT_TEMPLATE, entry.where, f"{entry.name}: nothing has filled in {what}", help)


def find_blanks_in_commands_and_variables(account: Account) -> Iterator[tuple[SourceNode, str, str]]:
    """Yield blanks where a shell may read the text: the leaf, a message and its help."""
    for entry in account.entries():
        keys = {str(part) for part in entry.path}
        if entry.state == "dropped" or not isinstance(entry.value, str) or not _OF_SHELL & keys:
            continue
        names = [found[1] or found[2] for found in _FREE_BLANK.finditer(entry.value)]
        if not names:
            continue
        flags = " ".join(f"--set {shlex.quote(f'{name}=VALUE')}" for name in dict.fromkeys(names))
        shown = " and ".join(dict.fromkeys(names))
        leaf = SourceNode(account, entry.path, entry.value)
        yield leaf, f"{entry.name}: nothing has filled in {shown}", f"Give its value: {flags}."
