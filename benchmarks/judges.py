"""Other programs that judge the same rendered files.

kubeconform checks schemas, conftest and Kyverno one small policy, kube-linter runs its own checks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.corpus import Corpus
from benchmarks.measure import Run, command
from benchmarks.peers import FOLDER, find, version

#: The one rule for every program that takes rules: each container sets a memory limit.
_REGO = """\
package main

import rego.v1

deny contains message if {
	input.kind == "TrainingRuntime"
	some job in input.spec.template.spec.replicatedJobs
	some container in job.template.spec.template.spec.containers
	not container.resources.limits.memory
	message := sprintf("%s has no memory limit", [container.name])
}
"""
_CONTAINERS = "spec.template.spec.replicatedJobs[].template.spec.template.spec.containers[]"
_KYVERNO: dict[str, Any] = {
    "apiVersion": "kyverno.io/v1",
    "kind": "ClusterPolicy",
    "metadata": {"name": "memory-limit"},
    "spec": {
        "rules": [
            {
                "name": "memory-limit",
                "match": {
                    "any": [{"resources": {"kinds": ["trainer.kubeflow.org/v1alpha1/TrainingRuntime"]}}]
                },
                "validate": {
                    "message": "every container needs a memory limit",
                    "foreach": [
                        {
                            "list": f"request.object.{_CONTAINERS}",
                            "pattern": {"resources": {"limits": {"memory": "?*"}}},
                        }
                    ],
                },
            }
        ]
    },
}


@dataclass(frozen=True, slots=True)
class Judge:
    """A program that judges the files of a corpus; `judge` runs it, with a folder for what it needs."""

    name: str
    judge: Callable[[Corpus, Path], Run]


def judges(used: dict[str, str], left_out: list[str]) -> Iterator[Judge]:
    """Yield the installed judges. Adds their versions to `used`, and reasons for the others to `left_out`."""
    known: dict[str, tuple[str, Callable[[str], Callable[[Corpus, Path], Run]]]] = {
        "kubeconform": ("kubeconform, every file", _kubeconform),
        "conftest": ("conftest, one rule", _conftest),
        "kube-linter": ("kube-linter, its own checks", _kube_linter),
        "kyverno": ("kyverno apply, one rule", _kyverno),
    }
    for name, (row, made) in known.items():
        program = _kubeconform_program() if name == "kubeconform" else find(name)
        if program is None:
            left_out.append(f"{name}: not on PATH nor in the folder that {FOLDER} names")
            continue
        used[name] = version(program)
        yield Judge(row, made(program))


def _kubeconform_program() -> str | None:
    """Return the kubeconform that gangplan itself uses."""
    from gangplan.tools.kubeconform import find_kubeconform

    found = find_kubeconform()
    return str(found.found.path) if found else None


def _kubeconform(program: str) -> Callable[[Corpus, Path], Run]:
    def judge(corpus: Corpus, folder: Path) -> Run:
        from gangplan.resolve.platform import resolve_platform_of_cluster_file
        from gangplan.tools.kubeconform import FILE_TEMPLATE
        from gangplan.validate.apiserver.schema import write_schemas
        from gangplan.validate.versions import choose_schema_versions_of
        from gangplan.workspace import load_workspace

        cluster = load_workspace(corpus.workspace).clusters[corpus.cluster]
        schemas = write_schemas(
            choose_schema_versions_of(resolve_platform_of_cluster_file(cluster)), folder / "schemas"
        )
        place = f"{schemas}/{FILE_TEMPLATE}"
        return command([program, "-strict", "-schema-location", place, "-n", "2", *map(str, corpus.files)])

    return judge


def _conftest(program: str) -> Callable[[Corpus, Path], Run]:
    def judge(corpus: Corpus, folder: Path) -> Run:
        (folder / "memory.rego").write_text(_REGO, encoding="utf-8")
        return command([program, "test", "--policy", str(folder), *map(str, corpus.files)])

    return judge


def _kube_linter(program: str) -> Callable[[Corpus, Path], Run]:
    # It exits with 1 if a check reports something, and skips kinds that it does not know.
    return lambda corpus, folder: command([program, "lint", *map(str, corpus.files)], folder, (0, 1))


def _kyverno(program: str) -> Callable[[Corpus, Path], Run]:
    def judge(corpus: Corpus, folder: Path) -> Run:
        policy = folder / "policy.json"
        policy.write_text(json.dumps(_KYVERNO), encoding="utf-8")
        runs = corpus.files[0].parents[1]
        return command([program, "apply", str(policy), "--resource", str(runs)], folder)

    return judge
