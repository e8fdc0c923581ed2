"""Equal inputs for other programs: the rendered runs of one cluster, as one text and a table of values.

The specs differ in team, name and command. What gangplan renders from them is split into a text with
placeholders and a table of values, and compared with every rendered file, so that other programs make the
same objects.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from benchmarks.measure import Run, gangplan
from benchmarks.workspace import CLUSTERS, write_workspace

Values = dict[str, str]
#: A placeholder in the text; its characters have no meaning in YAML, Helm, Jinja and Jsonnet.
PLACE = re.compile(r"qq([a-z]+)qq")
_TEAMS = 5
_SPEC = """\
apiVersion: gangplan.dev/v1
kind: TrainingJob
image: pytorch
command: [python, train.py, --seed, "{seed}"]
workers: 4
gpus: 8
cpu: 64
memory: 64Gi
data: {{corpus: /data/a}}
"""
_RUN = re.compile(r"^  name: (\S+)$", re.MULTILINE)
_HASH = re.compile(r'gangplan.dev/spec-hash: "?([0-9a-f]+)')
_CENTRE = re.compile(r"gangplan.dev/cost-centre: (\S+)")
_SOURCE = re.compile(r"^# Rendered by gangplan from specs/([^/]+)/(\S+)\.yaml:", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Corpus:
    """The rendered files, their common text with placeholders, and the values of each file."""

    workspace: Path
    cluster: str
    files: tuple[Path, ...]
    text: str
    rows: tuple[Values, ...]
    rendered: Run

    def objects(self) -> list[Any]:
        """Return all objects, as read from the YAML."""
        return [one for file in self.files for one in documents(file.read_text(encoding="utf-8"))]


def write_corpus(folder: Path, jobs: int) -> Corpus:
    """Write specs of one form, render them, and split the files. Raises ValueError if most differ in form."""
    cluster = CLUSTERS[1]
    for spec in write_workspace(folder, jobs, 1, len(CLUSTERS), _TEAMS):
        seed = 700_000 + int(spec[-10:-5])
        (folder / spec).write_text(_SPEC.format(seed=seed), encoding="utf-8")
    gangplan("render", "--no-cache", "--cluster", cluster, "-C", str(folder))
    runs = folder / "rendered" / cluster / "runs"
    files = sorted(runs.rglob("*-*.yaml"))
    texts = {file: file.read_text(encoding="utf-8") for file in files}
    rows = {file: _values(text) for file, text in texts.items()}
    forms = Counter(_emptied(texts[file], rows[file]) for file in files)
    text = forms.most_common(1)[0][0]
    # A hash that begins with a digit is quoted, any other is not: the commoner form is used.
    odd = [file for file in files if filled(text, rows[file]) != texts[file]]
    if 2 * len(odd) > jobs:
        raise ValueError(f"{len(odd)} of {jobs} rendered runs are not of one form")
    for file in odd:
        (folder / "specs" / rows[file]["team"] / f"{rows[file]['job']}.yaml").unlink()
    shutil.rmtree(folder / "rendered")
    rendered = gangplan("render", "--no-cache", "--cluster", cluster, "-C", str(folder))
    even = tuple(file for file in files if file not in odd)
    return Corpus(folder, cluster, even, text, tuple(rows[file] for file in even), rendered)


def _values(text: str) -> Values:
    source = _SOURCE.search(text)
    found = [_only(pattern, text) for pattern in (_RUN, _HASH, _CENTRE)]
    assert source is not None
    seed = 700_000 + int(source[2][-5:])
    return {
        "run": found[0],
        "hash": found[1],
        "centre": found[2],
        "team": source[1],
        "job": source[2],
        "seed": str(seed),
    }


def _only(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    if found is None:
        raise ValueError(f"no {pattern.pattern} in a rendered file")
    return found[1]


def _emptied(text: str, row: Values) -> str:
    for name, value in sorted(row.items(), key=lambda item: -len(item[1])):
        text = text.replace(value, f"qq{name}qq")
    return text


def filled(text: str, row: Values) -> str:
    """Return the text with the values of one run."""
    return PLACE.sub(lambda place: row[place[1]], text)


def documents(text: str) -> list[Any]:
    """Return the objects of a stream of YAML or JSON documents."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return [one for one in yaml.load_all(text, loader) if one is not None]


def same(ours: list[Any], theirs: list[Any]) -> bool:
    """Return whether both have the same objects, in any order."""
    return _by_name(ours) == _by_name(theirs)


def _by_name(objects: list[Any]) -> dict[tuple[str, str], Any]:
    return {(one["kind"], one["metadata"]["name"]): one for one in objects}
