"""Reduce an error message of kustomize to its innermost cause.

kustomize reports each level of accumulation and both of its guesses (file, then folder) in one line. All
patterns match messages of kustomize 5.8.1 and 5.5.0; tests/tools/test_kustomize_errors.py has them.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

#: The log line of some builds of kubectl: `E1121 10:50:28.2 29359 run.go:72] "command failed" err="..."`.
_LOGGED = re.compile(r'^E\d{4} .*? err=(?:"(?P<quoted>.*)"|<\n(?P<block>.*)\n >)$', re.DOTALL | re.MULTILINE)
_PREFIX = re.compile(r"^error: ", re.IGNORECASE)

#: A resource that could be read neither as a file (first) nor as a folder (second).
_BOTH = re.compile(
    r"accumulation err='(?P<file>.*?)': "
    r"(?P<folder>(?:must build at directory|recursed accumulation|cycle detected|failed to run|hit ).*)",
    re.DOTALL,
)

#: Layers that contain no cause themselves; `where` is the file or folder that the rest is about.
_LAYERS = tuple(
    re.compile(pattern, re.DOTALL)
    for pattern in (
        r"accumulating (?:resources|components): (?P<rest>.*)",
        r"(?:accumulating|merging) resources from '(?P<where>[^']*)': (?P<rest>.*)",
        r"recursed (?:accumulation|merging) (?:of|from) path '(?P<where>[^']*)': (?P<rest>.*)",
        r'(?:accumulateDirectory: |loader\.New )"(?P<rest>.*)"',
        r"must build at directory: not a valid directory: (?P<rest>.*)",
        r"trouble configuring builtin \w+ with config: `.*`: (?P<rest>.*)",
        r"failed to get the patch file from path\((?P<where>[^)]*)\): (?P<rest>.*)",
    )
)

#: Causes in plainer words.
_PLAIN = (
    (re.compile(r"evalsymlink failure on '(?P<a>[^']*)' : lstat .*"), r"no such file or folder: \g<a>"),
    (re.compile(r"security; file '(?P<a>[^']*)' is not in or .*"), r"\g<a> is outside of the overlay"),
    (re.compile(r"Get \"(?P<a>[^\"]*)\": .*", re.DOTALL), r"\g<a> is remote; builds do not use the network"),
    (
        re.compile(r"failed to run '\S*git fetch \S* (?P<a>\S+).*", re.DOTALL),
        r"\g<a> is remote; builds do not use the network",
    ),
)


def find_cause_in_kustomize_stderr(stderr: str, folder: Path) -> str:
    """Return the innermost cause on one line, with paths relative to `folder`; never an empty string."""
    text, where = _extract_error_from_kustomize_stderr(stderr), ""
    while (inner := _strip_layer_of_kustomize_error(text)) is not None:
        text, found = inner
        where = found or where
    for pattern, plain in _PLAIN:
        if pattern.fullmatch(text):
            text = pattern.sub(plain, text)
            break
    if where and Path(where).name not in text:
        text = f"{where}: {text}"
    return (
        " ".join(_make_overlay_paths_relative(text, folder.resolve()).split()) or "kustomize did not say why"
    )


def _make_overlay_paths_relative(text: str, root: Path) -> str:
    """Make paths relative to the overlay's folder: builds run in temporary folders, unknown to the reader."""
    text = text.replace(f"{root}/", "")
    text = re.sub(re.escape(str(root)) + r"(?![\w.-])", ".", text)
    return text.replace(f"{root.parent}/", "../") if root.parent.name else text


def _extract_error_from_kustomize_stderr(stderr: str) -> str:
    """Return the error itself, without deprecation warnings, the word `Error` or a surrounding log line."""
    text = "\n".join(line for line in stderr.splitlines() if not line.startswith("# Warning:")).strip()
    if logged := _LOGGED.search(text):
        if (block := logged["block"]) is not None:
            return "\n".join(line.removeprefix("\t") for line in block.splitlines()).strip()
        try:
            return str(json.loads(f'"{logged["quoted"]}"'))
        except ValueError:
            return logged["quoted"]
    return _PREFIX.sub("", text)


def _strip_layer_of_kustomize_error(text: str) -> tuple[str, str] | None:
    """Strip one layer: return its content and the file that it names, or None at the core."""
    if both := _BOTH.fullmatch(text):
        # The second guess says only that the path is not a folder, unless it is one.
        unhelpful = both["folder"].startswith("must build at directory")
        return (both["file"] if unhelpful else both["folder"]), ""
    for layer in _LAYERS:
        if match := layer.fullmatch(text):
            return match["rest"], match.groupdict().get("where") or ""
    return None
