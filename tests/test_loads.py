"""A command reads the workspace once, in all its steps, and passes it on as a value.

Calls are counted, not time: in this process and in the workers that are forked from it.
"""

from __future__ import annotations

import ast
import os
import pickle
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType

import pytest

import gangplan
from gangplan.component import load_component
from gangplan.packs.own import load_policies
from gangplan.pipeline.worker import WorkerOptions, create_pipeline_worker
from gangplan.rulebook import load_rulebook
from gangplan.source import load_file
from gangplan.workspace import load_spec, load_workspace
from tests import workspaces

PACKAGE = Path(gangplan.__file__).parent
READERS = (load_workspace, load_component, load_policies, load_rulebook, load_spec)
PATCH = """\
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
patches:
  - target: {kind: TrainJob}
    patch: |-
      - {op: add, path: /metadata/labels/example.com~1a, value: b}
"""
COMMANDS = {
    "validate": (["validate"], 1),
    "plan": (["plan", "specs/nlp/filings.yaml"], 1),
    "render": (["render"], 1),
    "render-check": (["render", "--check"], 1),
    "why-spec": (["why", "specs/nlp/filings.yaml"], 1),
    "why-line": (["why", "overlays/lab/cluster.yaml:3"], 1),
    "policy-list": (["policy", "list"], 1),
    "policy-test": (["policy", "test", "baseline"], 1),
    "cluster-check": (["cluster", "check", "--as", "kueue=0.18.2"], 1),
    "cluster-quota": (["cluster", "quota"], 1),
    # The second read is of what was fixed.
    "fix": (["validate", "--fix", "--fix-platform"], 2),
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Create the small workspace with a patch."""
    files = {**workspaces.STOCK, "specs/nlp/filings.yaml": workspaces.SPEC}
    return workspaces.write(tmp_path, {**files, "overlays/lab/kustomization.yaml": PATCH})


@contextmanager
def counted(log: Path) -> Iterator[Counter[tuple[int, str]]]:
    """Count calls of readers, and files that `load_file` reads, by process and name; complete at the end."""
    names: dict[CodeType, str] = {reader.__code__: reader.__name__ for reader in READERS}
    calls: Counter[tuple[int, str]] = Counter()

    def note(frame: FrameType, event: str, _: object) -> None:
        name = names.get(frame.f_code)
        if frame.f_code is load_file.__code__:
            name = str(frame.f_locals["path"])
        if event == "call" and name is not None:
            with log.open("a") as file:
                file.write(f"{os.getpid()} {name}\n")

    log.touch()
    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(None)
        calls.update(
            (int(process), name)
            for process, name in (line.split(" ", 1) for line in log.read_text().splitlines())
        )


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_reads_the_workspace_once(command: str, root: Path, tmp_path: Path) -> None:
    arguments, times = COMMANDS[command]
    with counted(tmp_path / "log") as calls:
        outcome = workspaces.gangplan(*arguments, "-C", root)
    own = os.getpid()
    assert calls[own, "load_workspace"] == times, outcome.err
    assert calls[own, "load_component"] == times * len(load_workspace(root).clusters)
    assert calls[own, "load_policies"] == times
    assert calls[own, "load_rulebook"] == times
    specs = {
        str(root / one.file) for one in load_workspace(root).spec_files
    }  # two renderings read specs twice
    files = {name: count for (_, name), count in calls.items() if name.startswith(str(root))}
    assert {count for name, count in files.items() if name not in specs} == {times}, files


@pytest.mark.skipif(not hasattr(os, "fork"), reason="workers are not forked here")
def test_forked_workers_read_only_specs(root: Path, tmp_path: Path) -> None:
    for number in range(60):
        workspaces.write(root, {f"specs/nlp/more-{number}.yaml": workspaces.SPEC})
    with counted(tmp_path / "log") as calls:
        outcome = workspaces.gangplan("render", "-C", root, "--engine", "process", "--jobs", "2")
    assert not outcome.code, outcome.err
    by_name = {name: processes_of(calls, name) for name in ("load_workspace", "load_component", "load_spec")}
    assert by_name["load_workspace"] == by_name["load_component"] == {os.getpid()}
    assert by_name["load_spec"] - {os.getpid()}, "workers read them"


def processes_of(calls: Counter[tuple[int, str]], wanted: str) -> set[int]:
    """Return the processes that called a reader."""
    return {process for process, name in calls if name == wanted}


def test_a_worker_elsewhere_reads_the_workspace_once(root: Path, tmp_path: Path) -> None:
    """Where processes are not forked (spawned, or MPI ranks), the pickled form creates the worker again."""
    worker = create_pipeline_worker(load_workspace(root), WorkerOptions(versions=(("kueue", "0.18.2"),)))
    pickled = pickle.dumps(worker)
    with counted(tmp_path / "log") as calls:
        anew = pickle.loads(pickled)
    assert calls[os.getpid(), "load_workspace"] == 1
    assert len(pickled) < 1000
    assert anew.options == worker.options
    assert anew.workspace.clusters["lab"].spec.versions.kueue == "0.18.2"


# No state in modules

# Names that functions change, each with its reason. What is in a cache follows from its keys alone.
KEPT = {
    "engines/held.py:_held": "what a worker process works with",
    "objects.py:_PLAIN": "cache: a text as YAML",
    "objects.py:_KEYS": "cache: a key as YAML",
    "source/blocks.py:_SCALARS": "cache: a scalar's value",
    "source/blocks.py:_KEYS": "cache: a key's text",
    "source/manifests.py:_KNOWN_KEYS": "cache: keys that are text",
    "validate/apiserver/policy/compiled.py:_PROGRAMS": "cache: compiled expressions",
    "validate/apiserver/policy/compiled.py:_KNOWN": "cache: compiled policies",
}
CHANGES = frozenset(
    (
        "append",
        "extend",
        "insert",
        "remove",
        "pop",
        "popitem",
        "clear",
        "update",
        "setdefault",
        "add",
        "discard",
    )
)


def changed_names(tree: ast.Module) -> set[str]:
    """Return the names of a module that its functions assign to, or whose value they change in place."""
    own = {
        target.id
        for node in tree.body
        for target in (node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)])
        if isinstance(target, ast.Name)
    }
    found: set[str] = set()
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        inside = list(ast.walk(function))
        local = {node.arg for node in inside if isinstance(node, ast.arg)}
        local |= {
            node.id for node in inside if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        for node in inside:
            if isinstance(node, ast.Global):
                found.update(node.names)
            holder: ast.expr | None = None
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, (ast.Store, ast.Del)):
                holder = node.value
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                holder = node.func.value if node.func.attr in CHANGES else None
            if isinstance(holder, ast.Name) and holder.id not in local:
                found.add(holder.id)
    return found & own


def test_no_module_keeps_state() -> None:
    """State from one command must not reach the next one in the same process."""
    found = {
        f"{path.relative_to(PACKAGE).as_posix()}:{name}"
        for folder in (PACKAGE, *filter(Path.is_symlink, PACKAGE.iterdir()))
        for path in sorted(folder.rglob("*.py"))
        for name in changed_names(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert found == set(KEPT)


def test_each_way_to_change_a_name_is_found() -> None:
    """Show that the test above can fail."""
    text = "A = []\nB = {}\nC = 0\nD: set[int] = set()\nE = []\ndef f():\n    global C\n    C = 1\n"
    text += "    A[:] = [1]\n    B.update(a=1)\n    D.add(1)\n    E = []\n    E.append(1)\n"
    assert changed_names(ast.parse(text)) == {"A", "B", "C", "D"}
