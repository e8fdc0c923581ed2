"""Programs compiled by an earlier command: the same as fresh ones, and never required."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gangplan import policies as shipped
from gangplan.cel import types
from gangplan.cel.environment import Environment
from gangplan.cel.kept import KeptPrograms
from gangplan.cel.program import CelProgram
from gangplan.packs.read import read_shipped_pack
from gangplan.validate.apiserver.crdrules import builtin
from gangplan.validate.apiserver.crdrules.rules import CompiledRule
from gangplan.validate.apiserver.policy import compiled as compiling
from gangplan.validate.apiserver.policy.compiled import Parts
from gangplan.validate.apiserver.policy.model import AdmissionPolicy, PlacedObject
from gangplan.validate.apiserver.policy.read import read_policy_objects
from gangplan.validate.apiserver.schema import SchemaVersions

MINORS = ("1.31", "1.34")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Compile into an empty folder, and forget what other tests compiled."""
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(compiling, "_PROGRAMS", {})
    return tmp_path


def shipped_policies(kubernetes: str) -> Iterator[AdmissionPolicy]:
    """Yield every policy that comes with gangplan."""
    for name in shipped.BUILTIN_PACKS:
        pack, _ = read_shipped_pack(name)
        assert pack is not None
        sources = pack.policies.values()
        written = [PlacedObject(one.body, one.document, one.file, one.is_shipped) for one in sources]
        yield from (one.policy for one in read_policy_objects(written, SchemaVersions(kubernetes)).policies)


def programs(parts: Parts) -> list[CelProgram]:
    """Return all programs of a policy."""
    checks = [program for one in parts.checks for program in (one.program, one.message) if program]
    return [*dict(parts.conditions).values(), *parts.variables.values(), *checks]


def told(program: CelProgram) -> tuple[object, ...]:
    """Return everything that makes up a program."""
    return program.text, program.type, program.may_crash, repr(program.checked), repr(program.plan.variables)


def refuse(self: Environment, text: str) -> None:
    """Fail, because nothing may be compiled again."""
    raise AssertionError(f"compiled again: {text}")


@pytest.mark.parametrize("kubernetes", MINORS)
def test_kept_programs_equal_those_that_were_compiled(
    kubernetes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    minor = int(kubernetes.split(".")[1])
    policies = list(shipped_policies(kubernetes))
    assert len(policies) > 40
    fresh = [compiling._compile_admission_policy_parts(one, minor) for one in policies]
    monkeypatch.setattr(compiling, "_PROGRAMS", {})
    monkeypatch.setattr(Environment, "check", refuse)
    again = [compiling._compile_admission_policy_parts(one, minor) for one in policies]
    for (before, wrong), (after, none) in zip(fresh, again, strict=True):
        assert not wrong
        assert not none
        assert list(map(told, programs(before))) == list(map(told, programs(after)))


def test_unused_programs_are_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = next(shipped_policies("1.34"))
    compiling._compile_admission_policy_parts(policy, 34)
    monkeypatch.setattr(compiling, "_PROGRAMS", {})
    parts, _ = compiling._compile_admission_policy_parts(policy, 34)
    assert [one._checked for one in programs(parts)] == [None] * len(programs(parts))


@pytest.mark.parametrize("damage", [b"", b"damaged", b"\x80\x05]q\x00."])
def test_a_damaged_file_is_made_again(damage: bytes, folder: Path) -> None:
    policy = next(shipped_policies("1.34"))
    compiling._compile_admission_policy_parts(policy, 34)
    [file] = folder.rglob(f"{policy.name}.*")
    sound = file.read_bytes()
    file.write_bytes(damage)
    compiling._PROGRAMS.clear()
    _, refused = compiling._compile_admission_policy_parts(policy, 34)
    assert not refused
    assert file.read_bytes() == sound


def test_programs_are_kept_by_text_types_and_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file's name decides nothing: the whole expression and its variables' types are the key."""
    environment = Environment(minor=34, variables={})
    kept = KeptPrograms("one")
    kept.compile(environment, "1 + 1", {})
    kept.save()
    monkeypatch.setattr(Environment, "check", refuse)
    assert KeptPrograms("one").compile(environment, "1 + 1", {}).evaluate({}) == 2
    for changed, text, composed in (
        (environment, "1 + 2", {}),
        (environment, "1 + 1", {"limit": types.INT}),
        (Environment(minor=33, variables={}), "1 + 1", {}),
        (Environment(minor=34, variables={"one": types.INT}), "1 + 1", {}),
    ):
        with pytest.raises(AssertionError, match="compiled again"):
            KeptPrograms("one").compile(changed, text, composed)


def test_built_in_rules_of_crds_are_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    versions = SchemaVersions("1.34", "2.3", "0.19", "0.12")
    kinds = sorted({kind for fact in builtin.FACTS for kind in fact.kinds})
    assert len(kinds) > 5

    def rules() -> list[CompiledRule]:
        found = []
        for group, kind in kinds:
            api_version = group if "/" in group else f"{group}/v1beta2"
            found += builtin.compile_built_in_crd_rules(api_version, kind, versions)
        builtin._compile_crd_rules_of_kind.cache_clear()
        return found

    builtin._compile_crd_rules_of_kind.cache_clear()
    fresh = rules()
    monkeypatch.setattr(Environment, "check", refuse)
    again = rules()
    assert len(fresh) > 20
    for before, after in zip(fresh, again, strict=True):
        assert told(before.program) == told(after.program)
        assert (before.message is None, before.uses_old) == (after.message is None, after.uses_old)


def test_a_workspace_s_own_policies_are_not_kept(folder: Path) -> None:
    policy = next(shipped_policies("1.34"))
    own = PlacedObject(policy.written.body, policy.written.document, "policies/own.yaml", False)
    [found] = read_policy_objects([own], SchemaVersions("1.34")).policies
    compiling._compile_admission_policy_parts(found.policy, 34)
    assert not [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]


def test_nothing_is_kept_if_python_writes_no_bytecode(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    compiling._compile_admission_policy_parts(next(shipped_policies("1.34")), 34)
    assert not list(folder.rglob("*.cpython*"))
