"""Answers to the same question about the same files, repeated before the program is imported.

A question is a command line with all that an answer may depend on besides the workspace: the folder, the day,
the terminal, the variables and programs that gangplan looks at, gangplan itself and the packages that it
uses. An answer is what was written to the terminal and the exit code. It is kept only if the workspace was
the same before the command and after it, so a command that changed something is never answered from here.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from hashlib import sha256
from io import TextIOWrapper
from itertools import pairwise

from gangplan import clock
from gangplan.incremental.look import Look, LookMemory, look_at_folders, read_memory
from gangplan.incremental.program import SKIPPED_FOLDERS, find_package_folder, list_installed_versions
from gangplan.incremental.store import MOST_ANSWER_BYTES, MOST_ANSWERS, RecordStore

#: Commands whose answer follows from the workspace. All others do something, or look elsewhere.
COMMANDS = frozenset({"plan", "render", "validate"})
#: Flags that make them do something, or look at something other than the workspace as it is.
_ELSEWHERE = (
    "--base",
    "--dry-run",
    "--diff",
    "--fix",
    "--no-cache",
    "--output",
    "-o",
    "--server",
    "--snapshot",
    "--usage",
)
#: Short flags in one word, such as -vo or -qC../b, which may have any of these in them.
_BUNDLE = re.compile(r"-[A-Za-z]{2}")
#: A report that goes to a file.
_TO_FILE = re.compile(r"(?:--format=)?[a-z]+=.")
#: What gangplan reads of a workspace, and what it writes.
FOLDERS = ("specs", "overlays", "images", "policies", "schemas", "jobtemplates", "rendered")
#: The variables that gangplan and its packages read (tests/incremental checks the code for others).
VARIABLES = (
    "CI",
    "CLICOLOR_FORCE",
    "COLUMNS",
    "FORCE_COLOR",
    "GANGPLAN_CACHE_KEY",
    "GANGPLAN_KUBECONFORM",
    "GANGPLAN_KUSTOMIZE",
    "GANGPLAN_OFFLINE",
    "GANGPLAN_RULE_PAGES",
    "GANGPLAN_TODAY",
    "GANGPLAN_TOOL_CACHE",
    "HOME",
    "LINES",
    "NO_COLOR",
    "PATH",
    "TERM",
    "TERMINAL_WIDTH",
    "TZ",
    "XDG_CACHE_HOME",
)
#: The programs that gangplan may start.
_PROGRAMS = ("git", "kubeconform", "kubectl", "kustomize")
#: Exit codes of answers that follow from the input: clean, findings, bad input.
_ANSWERS = frozenset({0, 1, 2})
#: The most characters of an answer that is kept; longer ones are computed again.
_MOST = 32_000_000
#: A workspace with more files is not read again after a command: the answer counts until one is touched.
MANY_FILES = 5000
#: How many processes read a large workspace.
_WORKERS = 2

#: What was written, in its order: the descriptor (1 or 2) and the text.
Written = list[tuple[int, str]]


class Question:
    """A command line in its surroundings, about a workspace as it is now.

    `write` collects what the command writes; `keep` stores it as the answer.
    """

    __slots__ = ("before", "is_whole", "key", "memory", "root", "size", "store", "written")

    def __init__(self, root: str, key: str, store: RecordStore, memory: LookMemory, before: Look) -> None:
        self.root, self.key, self.store, self.memory, self.before = root, key, store, memory, before
        self.written: Written = []
        self.size = 0
        self.is_whole = True

    def answer(self) -> tuple[Written, int] | None:
        """Return the last answer, if it was about the same files."""
        digest = self.before.digest
        found = self.store.get(self._name(digest))
        if not isinstance(found, dict) or found.get("workspace") != digest:
            return None
        if found.get("untouched") not in ("", self.before.whole):
            return None  # the files are the same, but perhaps were not while the answer was found
        return [(number, text) for number, text in found["written"]], found["code"]

    def write(self, number: int, data: bytes) -> None:
        """Collect bytes that went to standard output (1) or standard error (2)."""
        self.size += len(data)
        self.is_whole = self.is_whole and self.size <= _MOST
        if self.is_whole:
            self.written.append((number, data.decode("utf-8", "surrogateescape")))

    def keep(self, code: int) -> None:
        """Store the answer if it follows from the files, and in any case what is known of the files.

        What a command did to a few files is left to the next look.
        """
        before = self.before
        if before.is_over:
            if before.memory != self.memory:
                self.store.put("folders", before.memory)
            return
        try:
            if before.files > MANY_FILES and not before.is_rewritten:
                after = self._recent()
                untouched = after.whole
            else:
                after, untouched = look_at_folders(self.root, FOLDERS, self.memory, workers=_WORKERS), ""
        except OSError:
            return
        if after.memory != self.memory:
            self.store.put("folders", after.memory)
        if untouched and len(after.memory) < len(after.contents):
            return  # something is still changing
        if code in _ANSWERS and self.is_whole and after.contents == before.contents:
            digest = after.digest
            held = {"workspace": digest, "untouched": untouched, "written": self.written, "code": code}
            self.store.put(self._name(digest), held)
            self.store.keep_newest("answers", 1, start=self.key)
            self.store.keep_newest("answers", MOST_ANSWERS, MOST_ANSWER_BYTES)

    def _name(self, workspace: str) -> str:
        """Return the name of the answer about a workspace of this digest, so that no other one is read."""
        return f"answers/{self.key}-{workspace[:16]}"

    def _recent(self) -> Look:
        """Return the look before the command, with folders read again that had changed just before it.

        Another change in the same tick of the clock would not show in any other way. Raises OSError.
        """
        before, after = self.before, Look()
        recent = {path for path in before.contents if path not in before.memory}
        again = look_at_folders(self.root, recent, {}) if recent else after
        for name in ("contents", "memory", "said"):
            kept = {path: one for path, one in getattr(before, name).items() if path not in recent}
            setattr(after, name, {**kept, **getattr(again, name)})
        return after


def build_question_for_cached_answer(arguments: Sequence[str]) -> Question | None:
    """Return the question of a command line, or None if the answer does not follow from the workspace's
    files."""
    if not arguments or arguments[0] not in COMMANDS or "GITHUB_STEP_SUMMARY" in os.environ:
        return None
    if not (isinstance(sys.stdout, TextIOWrapper) and isinstance(sys.stderr, TextIOWrapper)):
        return None  # closed, or captured by the caller
    if any(one.startswith(_ELSEWHERE) or _BUNDLE.match(one) or _TO_FILE.match(one) for one in arguments):
        return None
    try:
        root = _find_workspace_root_of_question(arguments)
        if root is None:
            return None
        key = _digest_question_for_cached_answer(root, arguments)
        store = RecordStore(root)
        if key is None or store.folder is None:
            return None
        memory = read_memory(store.get("folders"))
        return Question(root, key, store, memory, look_at_folders(root, FOLDERS, memory, workers=_WORKERS))
    except OSError:
        return None


def _find_workspace_root_of_question(arguments: Sequence[str]) -> str | None:
    """Return the workspace, as `commands.common.build_request` finds it; None if that is unsure."""
    start = os.getcwd()
    for index, one in enumerate(arguments):
        if one in ("-C", "--workspace"):
            start = os.path.join(start, *arguments[index + 1 : index + 2])
        elif one.startswith(("-C", "--workspace=")):
            return None
    folder = os.path.realpath(start)
    while True:
        if all(os.path.isdir(os.path.join(folder, name)) for name in ("specs", "overlays")):
            return folder
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above


def _digest_question_for_cached_answer(root: str, arguments: Sequence[str]) -> str | None:
    """Return a digest of the question; None if it names files that are not looked at."""
    folder = os.getcwd()
    parts: list[object] = [folder, root, *arguments]
    for before, one in pairwise(arguments):
        for base in (folder, root):
            path = os.path.normpath(os.path.join(base, one))
            there = os.path.lexists(path)
            if there and path != root and not _is_looked_at(root, path):
                if one.startswith("-") or before in ("-C", "--workspace"):
                    continue
                return None
            parts.append(there)
    parts += [f"{name}={os.environ[name]}" for name in VARIABLES if name in os.environ]
    parts += [clock.read_today(), _describe_terminals(), _find_git_repository(root)]
    parts += [*_list_tool_file_states(), *_list_package_file_states()]
    return sha256("\0".join(map(str, parts)).encode("utf-8", "surrogateescape")).hexdigest()[:32]


def _is_looked_at(root: str, path: str) -> bool:
    """Return whether a path is one of the folders that an answer depends on, or inside one."""
    return f"{path}/".startswith(tuple(f"{root}/{name}/" for name in FOLDERS))


def _describe_terminals() -> str:
    """Return which of the streams are terminals, and how wide they are."""
    found = []
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        is_terminal = stream is not None and stream.isatty()
        found.append(str(os.get_terminal_size(stream.fileno())) if is_terminal else "")
    return "|".join(found)


def _find_git_repository(root: str) -> str:
    """Return the folder of the Git repository that the workspace is in."""
    folder = root
    while not os.path.exists(os.path.join(folder, ".git")):
        above = os.path.dirname(folder)
        if above == folder:
            return ""
        folder = above
    return folder


def _list_tool_file_states() -> list[str]:
    """Return what the system says about every program that may be started, in all places where it may be
    found."""
    home = os.path.expanduser("~")
    cache = os.environ.get("GANGPLAN_TOOL_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache"), "gangplan", "tools"
    )
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    paths = [os.path.join(folder, name) for folder in folders for name in _PROGRAMS]
    overriding = [f"GANGPLAN_{name.upper()}" for name in _PROGRAMS]
    paths += [os.path.expanduser(os.environ[name]) for name in overriding if name in os.environ]
    for name in _PROGRAMS:
        try:
            versions = sorted(os.listdir(os.path.join(cache, name)))
        except OSError:
            versions = []
        paths += [os.path.join(cache, name, version, name) for version in versions]
    return [f"{path} {said}" for path in paths if (said := _describe_file_state_for_cached_answer(path))]


def _list_package_file_states() -> list[str]:
    """Return what the system says about gangplan's own files, and the packages that it uses."""
    found = [find_package_folder(), *list_installed_versions()]
    for parent, folders, names in os.walk(found[0], followlinks=True):
        folders[:] = sorted(name for name in folders if name not in SKIPPED_FOLDERS)
        found += [
            f"{name} {_describe_file_state_for_cached_answer(os.path.join(parent, name))}"
            for name in sorted(names)
        ]
    return found


def _describe_file_state_for_cached_answer(path: str) -> str:
    """Return what distinguishes one state of a file from another; empty if there is no file."""
    try:
        own = os.stat(path)
    except OSError:
        return ""
    return f"{own.st_size} {own.st_mtime_ns} {own.st_ino}"
