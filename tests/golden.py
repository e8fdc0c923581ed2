"""Golden trees of tests/examples: whole for one; the others hold only the differences from a known file.

`expected/` has every file of a whole tree. `expected.diff` has, for each file of an example, the file that it
is compared with (of a whole tree, or of the sample's `rendered/`), and the lines that differ under the keys
that they belong to. Both sides have the names of the example (cluster, team, job), and `-hash` for the hash
of a run. So a line that all runs share is committed in whole trees only, and a change of it is reviewed
there.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from pathlib import Path

import pytest

from gangplan.errors import Exit
from gangplan.tools.kustomize import find_kustomize_engine
from tests.workspaces import REPOSITORY, gangplan, tree

Texts = Mapping[str, str]
EXAMPLES = sorted(path for path in (REPOSITORY / "tests/examples").iterdir() if path.is_dir())
WHOLE = [path.name for path in EXAMPLES if (path / "expected").exists()]
#: The rendered/ of the sample workspace, as a whole tree.
SAMPLE = "sample"
_HELD = tempfile.TemporaryDirectory(prefix="gangplan-examples-")
_HASH = re.compile(r"-(hash|[0-9a-f]{8})\.yaml$")
_RUN = re.compile(r"/runs/.*-(?P<hash>[0-9a-f]{8})\.yaml$")
_COMPARED = re.compile(r"^=== (?P<file>\S+), as (?P<model>\S+)$", re.MULTILINE)
_KEY = re.compile(r" *(?P<item>- )?(?P<key>[\w./-]+):(?: (?P<value>[\w.-]+)$)?")


@functools.cache
def render_example(name: str) -> Path:
    """Render an example once in a process, and return the folder."""
    source, root = REPOSITORY / "tests/examples" / name / "input", Path(_HELD.name) / name
    if list(source.glob("overlays/*/kustomization.yaml")) and find_kustomize_engine() is None:
        pytest.skip("no kustomize and no kubectl: overlays with patches cannot be built")
    shutil.copytree(source, root, dirs_exist_ok=True)
    outcome = gangplan("render", "-C", root)
    assert outcome.code == Exit.CLEAN, outcome.err
    return root / "rendered"


def read_example(name: str) -> dict[str, str]:
    """Return the files that an example is rendered to."""
    return {path: data.decode() for path, data in tree(render_example(name)).items()}


def hide_hashes(files: Texts, text: str) -> str:
    """Return a text with `-hash` in the names of runs, except where a job has several runs on a cluster."""
    stems = Counter(path[: found.start("hash")] for path in files if (found := _RUN.search(path)))
    several = {path.rpartition("/")[2] for path, count in stems.items() if count > 1}
    jobs = "|".join(sorted({path.rpartition("/")[2] for path in stems} - several))
    return re.sub(rf"\b({jobs})[0-9a-f]{{8}}\b", r"\1hash", text) if jobs else text


def compare_example(name: str, files: Texts, before: str = "") -> str:
    """Return the text of `expected.diff` for an example's files.

    The text `before` says which file each is compared with: a file of a whole tree, or an earlier file of the
    same example. A file that `before` does not name is compared with the most similar one.
    """
    models = _models(name)
    chosen = {found["file"]: found["model"] for found in _COMPARED.finditer(before)}
    lines = []
    for path, text in ((hide_hashes(files, path), hide_hashes(files, files[path])) for path in files):
        known = chosen.get(path, "")
        similar = [model for model in models if _kind(model.partition("/")[2]) == _kind(path)]
        ways = {
            model: list(compare_files(model.partition("/")[2], models[model], path, text))
            for model in ([known] if known in models else similar or models)
            if model.split("/")[2] == path.split("/")[1]
        }
        model = min(ways, key=lambda one: (len(ways[one]), one))
        lines += [f"=== {path}, as {model}", *ways[model]]
        models[f"{name}/{path}"] = text
    return "\n".join([*lines, ""])


def _models(name: str) -> dict[str, str]:
    found = {}
    for one in WHOLE:
        if one != name:
            files = read_example(one)
            found.update(
                {f"{one}/{hide_hashes(files, path)}": hide_hashes(files, files[path]) for path in files}
            )
    sample = {path: data.decode() for path, data in tree(REPOSITORY / "rendered").items()}
    shown = {hide_hashes(sample, path): hide_hashes(sample, text) for path, text in sample.items()}
    return found | {f"{SAMPLE}/{path}": text for path, text in shown.items() if path.endswith(".yaml")}


def _kind(path: str) -> str:
    """Return the kind of a file: files of one kind can be compared."""
    _, part, *_, file = path.split("/")
    return part if part == "runs" else f"{part}/{file}"


def _names(path: str) -> list[str]:
    """Return cluster, team and job of a file; a file of the platform has only the first."""
    cluster, part, team, *rest = path.split("/")
    team_and_job = [] if part == "platform" else [team, *(_HASH.sub("", one) for one in rest)]
    return [cluster, *team_and_job]


def compare_files(like: str, model: str, path: str, text: str) -> Iterator[str]:
    """Yield the objects that only one of two files has, and the lines in which common objects differ."""
    names = dict(zip(_names(like), _names(path), strict=False))
    words = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    model = re.sub(rf"(?<![a-z0-9])({words})(?![a-z0-9])", lambda found: names[found[0]], model)
    old, new = _objects(model), _objects(text)
    matcher = SequenceMatcher(None, list(old), list(new), autojunk=False)
    for change, i1, i2, j1, j2 in matcher.get_opcodes():
        if change != "equal":
            yield from (f"--- {key}: not here" for key in list(old)[i1:i2])
        for key in list(new)[j1:j2]:
            if change != "equal":
                yield from (f"--- {key}: only here", *(f"+{line}" for line in new[key].splitlines()))
            elif old[key] != new[key]:
                yield from (f"--- {key}", *_lines(old[key].splitlines(), new[key].splitlines()))


def _objects(text: str) -> dict[str, str]:
    """Return each object of a file by kind, namespace and name."""
    found: dict[str, str] = {}
    for body in re.split(r"^---\n", text, flags=re.MULTILINE):
        parts = (
            re.search(rf"^{key}: (\S+)", body, re.MULTILINE) for key in ("kind", "  namespace", "  name")
        )
        key = "/".join(part[1] for part in parts if part)
        assert key not in found, key
        found[key] = body
    return found


def _lines(old: list[str], new: list[str]) -> Iterator[str]:
    """Yield the lines that differ; an insertion follows the line before it."""
    for change, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if change != "equal":
            yield f"@@ {_place(new, j1) if j1 < j2 else _place(old, i1)}".rstrip()
            yield from (f" {line}" for line in new[j1 - 1 : j1] if change == "insert")
            yield from (f"-{line}" for line in old[i1:i2])
            yield from (f"+{line}" for line in new[j1:j2])


def _place(lines: list[str], index: int) -> str:
    """Return the keys and the named items that contain a line."""
    keys: list[str] = []
    level = _level(lines[index])
    for line in reversed(lines[:index]):
        if (found := _KEY.match(line)) and _level(line) < level:
            level = _level(line)
            keys.append(found["value"] or found["key"] if found["item"] else found["key"])
    return ".".join(reversed(keys))


def _level(line: str) -> int:
    """Return how deep a line is.

    An item is deeper than the key of its list, though both may begin in one column.
    """
    bare = line.lstrip()
    return 2 * (len(line) - len(bare)) + bare.startswith("- ")


if __name__ == "__main__":
    from tests.conftest import TODAY

    os.environ["GANGPLAN_TODAY"] = TODAY
    for example in EXAMPLES:
        shutil.copytree(render_example(example.name), Path(sys.argv[1]) / example.name)
