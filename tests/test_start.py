"""What a start imports: modules are counted, because their number decides how long a start takes."""

from __future__ import annotations

import json
import subprocess
import sys
from inspect import get_annotations
from pathlib import Path
from typing import get_args

import pytest

from gangplan.packs.model import ParameterValue
from gangplan.spec.base import Cpu, DurationSeconds, Memory, Price, ReadBy, Strict, Weight
from gangplan.spec.params import PolicyParam
from tests import workspaces
from tests.workspaces import REPOSITORY

COUNT = """
import sys
from gangplan.entry import main
code = main()
import json
print(json.dumps([int(code), sorted(sys.modules)]), file=sys.stderr)
"""
# Counts what typer builds for the parameters of a command, and for how many commands.
BUILT = """
import sys
import pydantic
import typer.main
from collections import Counter

built = Counter()

def counted(owner, name):
    make = getattr(owner, name)
    def count(*given, **named):
        built[name] += 1
        return make(*given, **named)
    setattr(owner, name, count)

counted(pydantic.TypeAdapter, "__init__")
counted(typer.main, "get_command_from_info")
from gangplan.entry import main
main()
print(built["get_command_from_info"], built["__init__"], file=sys.stderr)
"""
# Modules that read and check workspaces. None of them is needed to list flags.
HEAVY = frozenset(("pydantic", "jinja2", "yaml", "jsonschema", "jsonschema_rs", "kubernetes", "email"))
HELP = ["--help", "-h", "validate --help", "render -h", "cluster check --help", "cluster --help", "help plan"]
# The most modules, ours and others', that a command may import: what it needs, and a few more. A growing
# number slows down each start, by half a millisecond a module; raise it only for what the command uses.
MOST = {"--version": 90, "--help": 230, "validate": 890, "explain": 470}


def imported(*arguments: str, root: Path = REPOSITORY) -> set[str]:
    """Return the modules that a command has imported when it ends."""
    done = subprocess.run(
        [sys.executable, "-c", COUNT, *arguments], cwd=root, capture_output=True, text=True, check=False
    )
    code, modules = json.loads(done.stderr.splitlines()[-1])
    assert code == 0, done.stderr
    return set(modules)


def test_the_version_needs_only_the_entry() -> None:
    modules = imported("--version")
    assert not modules & HEAVY
    assert {name for name in modules if name.startswith("gangplan")} == {"gangplan", "gangplan.entry"}
    assert len(modules) <= MOST["--version"]


@pytest.mark.parametrize("arguments", HELP)
def test_help_reads_no_workspace(arguments: str, tmp_path: Path) -> None:
    modules = imported(*arguments.split(), root=tmp_path)
    assert not modules & HEAVY
    assert "gangplan.workspace" not in modules
    assert len(modules) <= MOST["--help"]


def test_a_rule_is_explained_without_the_checks(tmp_path: Path) -> None:
    modules = imported("explain", "rdma-fallback", root=tmp_path)
    assert not modules & {"jinja2", "jsonschema_rs", "gangplan.validate.proofs", "gangplan.pipeline.runs"}
    assert len(modules) <= MOST["explain"]


def test_validate_imports_what_it_uses(tmp_path: Path) -> None:
    root = workspaces.write(tmp_path, {**workspaces.STOCK, "specs/nlp/filings.yaml": workspaces.SPEC})
    imported("validate", "--no-cache", root=root)  # keeps the compiled policies, like compiled modules
    modules = imported("validate", "--no-cache", root=root)
    unused = {
        "kubernetes",
        "jsonschema",
        "mpi4py",
        "multiprocessing.pool",
        "gangplan.simulate",
        "gangplan.reference",
        # For `--fix`, `--base`, other formats, and swaps of whole trees.
        "gangplan.fixes",
        "gangplan.pipeline.base",
        "gangplan.report.sarif",
        "xml.etree.ElementTree",
        "ctypes",
        # For plugins of pydantic, and to parse expressions that no earlier command kept.
        "importlib.metadata",
        "email.message",
        "gangplan.cel.parser",
    }
    assert not modules & unused
    assert len(modules) <= MOST["validate"]


def test_models_are_annotated_with_types() -> None:
    """pydantic compiles annotations that are texts (in modules with `from __future__ import annotations`)."""
    known = list(Strict.__subclasses__())
    for model in known:
        known += model.__subclasses__()
    texts = {
        f"{model.__module__}.{model.__name__}.{name}"
        for model in known
        if model.__module__.startswith("gangplan.")
        and model.__module__ != "gangplan.packs.cases"  # only `policy test` reads them
        for name, annotation in get_annotations(model).items()
        if isinstance(annotation, str)
    }
    assert len(known) > 50
    assert texts == set()


def test_amounts_are_read_without_inspecting_their_type() -> None:
    for kind in (Cpu, Memory, DurationSeconds, Weight, Price, PolicyParam, ParameterValue):
        assert isinstance(get_args(kind)[-1], ReadBy), kind


@pytest.mark.parametrize(
    ("arguments", "commands", "adapters"),
    [
        ("plan", 1, 1),
        ("cache info", 2, 1),
        ("validate specs/nlp/filings.yaml", 1, 3),
        ("validate -C .", 1, 3),
    ],
)
def test_only_one_branch_of_commands_is_built(
    arguments: str, commands: int, adapters: int, tmp_path: Path
) -> None:
    """pydantic adapters are built only for --help and the given parameters; a list or a path needs two."""
    root = workspaces.write(tmp_path, {**workspaces.STOCK, "specs/nlp/filings.yaml": workspaces.SPEC})
    words = [sys.executable, "-c", BUILT, *arguments.split()]
    done = subprocess.run(words, cwd=root, capture_output=True, text=True, check=False)
    assert done.stderr.split() == [str(commands), str(adapters)], done.stderr
