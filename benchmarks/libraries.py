"""Make the same manifests with Python libraries that have engines of their own: KCL and cdk8s."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.corpus import PLACE, Corpus, documents
from benchmarks.measure import Run, command
from benchmarks.peers import FOLDER, Peer

_KCL = """
import sys
from kcl_lib import api
found = api.API().exec_program(api.ExecProgramArgs(k_filename_list=["main.k"]))
sys.stdout.write(found.yaml_result)
"""
# As users of the library write charts: each object is a construct with its fields.
_CDK8S = """
import json
from pathlib import Path
from cdk8s import ApiObject, App, Chart, JsonPatch
app = App(outdir="out")
chart = Chart(app, "runs", disable_resource_name_hashes=True)
text = Path("objects.json").read_text()
for row in json.loads(Path("values.json").read_text()):
    filled = text
    for name, value in row.items():
        filled = filled.replace(f"qq{name}qq", value)
    for number, one in enumerate(json.loads(filled)):
        head = {"api_version": one["apiVersion"], "kind": one["kind"], "metadata": one["metadata"]}
        made = ApiObject(chart, f"{row['run']}-{number}", **head)
        made.add_json_patch(JsonPatch.add("/spec", one["spec"]))
app.synth()
"""


def libraries(used: dict[str, str], left_out: list[str]) -> Iterator[Peer]:
    """Yield the libraries that this Python, or one in the folder of peers, can import; report the others."""
    makers = {
        "kcl_lib": ("kcl", _write_kcl, _KCL, "out.yaml"),
        "cdk8s": ("cdk8s (Python)", _write_cdk8s, _CDK8S, "out/*.yaml"),
    }
    for module, (name, write, program, output) in makers.items():
        found = _python(module)
        if found is None:
            left_out.append(f"{name}: no {module} for this Python nor one in the folder that {FOLDER} names")
            continue
        python, used[name] = found

        def make(folder: Path, words: tuple[str, ...] = (python, "-c", program)) -> Run:
            return command(words, folder, out=folder / "out.yaml")

        def made(folder: Path, pattern: str = output) -> Iterator[Path]:
            return folder.glob(pattern)

        yield Peer(name, write, make, made)


def _python(module: str) -> tuple[str, str] | None:
    """Return an interpreter that has the library, and the library's version."""
    told = f"import importlib.metadata as m; print(m.version({module!r}))"
    beside = shutil.which("python", path=os.environ.get(FOLDER) or os.devnull)
    for python in (sys.executable, beside):
        if python is None:
            continue
        done = subprocess.run([python, "-c", told], capture_output=True, text=True, check=False, timeout=60)
        if done.returncode == 0:
            return python, done.stdout.strip()
    return None


def _write_kcl(corpus: Corpus, folder: Path) -> None:
    """Write a lambda from a run to its objects; texts with placeholders are joined by `+`."""

    def spelled(text: str) -> str:
        parts = PLACE.split(json.loads(text))
        return " + ".join(f"v.{part}" if index % 2 else _quoted(part) for index, part in enumerate(parts))

    content = json.dumps(documents(corpus.text), ensure_ascii=False)
    pieces = re.split(r'("(?:[^"\\]|\\.)*")', content)
    names = {"true": "True", "false": "False", "null": "None"}
    for index, piece in enumerate(pieces):
        if index % 2:
            is_key = pieces[index + 1].startswith(":")
            pieces[index] = piece if is_key else spelled(piece)
        else:
            pieces[index] = re.sub(r"true|false|null", lambda word: names[word[0]], piece)
    rows = json.dumps(corpus.rows)
    (folder / "main.k").write_text(
        f"import manifests\n_make = lambda v {{\n    {''.join(pieces)}\n}}\n_runs = {rows}\n"
        "manifests.yaml_stream([one for run in _runs for one in _make(run)])\n",
        encoding="utf-8",
    )


def _quoted(text: str) -> str:
    """Quote a string for KCL, where `${` begins an expression."""
    return json.dumps(text, ensure_ascii=False).replace("$", "\\x24")


def _write_cdk8s(corpus: Corpus, folder: Path) -> None:
    (folder / "objects.json").write_text(json.dumps(documents(corpus.text)), encoding="utf-8")
    (folder / "values.json").write_text(json.dumps(corpus.rows), encoding="utf-8")
