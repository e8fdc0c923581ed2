"""Laws of all imports: every leaf of a source has an entry, and a suggestion changes only what it states."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gangplan.findings import Location
from gangplan.imports.account import LEAF_STATES, Account
from gangplan.imports.draft import ImportAnswers, ImportTarget
from gangplan.imports.kinds import SOURCE_KINDS
from gangplan.imports.mapping import draft_spec_of_imported_job
from gangplan.imports.sources import OtherObject
from gangplan.imports.suggest import Suggestion, insert_import_suggestion
from gangplan.objects import dump_object_as_block_yaml, walk_leaves
from gangplan.source import load_all_documents
from gangplan.workspace import load_workspace
from tests import plain
from tests.imports.sources import SOURCES
from tests.workspaces import CATALOG, CLUSTER, STOCK, TEAM, write

NAMES = st.sampled_from(
    (
        "env",
        "resources",
        "limits",
        "cpu",
        "securityContext",
        "volumes",
        "image",
        "unheard",
        "annotations",
        "affinity",
        "name",
    )
)
LEAVES = st.one_of(st.none(), st.booleans(), st.integers(0, 99), st.text("abc/-.0", max_size=6))
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("home"), STOCK)


def accounted(kind: str, bodies: list[Any], root: Path) -> bool:
    """Read and map objects, and check that each leaf has an entry at its line.

    Returns False for an object that is refused.
    """
    documents, findings = load_all_documents(
        "---\n".join(map(dump_object_as_block_yaml, bodies)).encode(), "job.yaml"
    )
    assert len(documents) == len(bodies), findings
    account = Account.of(documents[0])
    others = [OtherObject(one.value, one, ()) for one in documents if isinstance(one.value, dict)]
    try:
        work = SOURCE_KINDS[kind].read(account, others)
    except ValueError:
        return False
    draft_spec_of_imported_job(work, ImportTarget(load_workspace(root), "nlp", ImportAnswers()))
    for one in (account, *work.others):
        document = documents[0] if one is account else documents[-1]
        assert [entry.path for entry in one.entries()] == [path for path, _ in walk_leaves(document.value)]
        for entry in one.entries():
            assert entry.state in LEAF_STATES
            assert entry.where == document.where(entry.path)
            assert entry.to if entry.state == "mapped" else entry.why, entry
    return True


@pytest.mark.parametrize(("kind", "text"), SOURCES.items())
def test_every_leaf_of_a_source_has_an_entry(kind: str, text: str, workspace: Path) -> None:
    assert accounted(kind, list(plain.load_all(text)), workspace)


@pytest.mark.parametrize("kind", SOURCES)
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_leaf_is_lost_in_a_changed_source(kind: str, workspace: Path, data: st.DataObject) -> None:
    """Any part of a source may be of another type, absent, or an unknown tree."""
    bodies = list(plain.load_all(SOURCES[kind]))
    body = data.draw(st.sampled_from(bodies))
    for _ in range(data.draw(st.integers(1, 3))):
        paths = [path for path, _ in walk_leaves(body) if path]
        path = data.draw(st.sampled_from(paths))
        path = path[: data.draw(st.integers(1, len(path)))]
        holder = body
        for part in path[:-1]:
            holder = holder[part]
        if isinstance(holder, dict):
            key = data.draw(st.sampled_from([path[-1], "unheard", "env", "volumes"]))
            holder[key] = data.draw(TREES)
        else:
            holder[path[-1]] = data.draw(TREES)
    accounted(kind, bodies, workspace)


@pytest.mark.parametrize(
    ("text", "path", "value"),
    [
        (TEAM, ("secrets",), ("more",)),
        (TEAM, ("pullSecrets",), ("registry",)),
        (TEAM, ("claims", "new"), {"accessModes": ["ReadWriteMany"]}),
        (TEAM.replace("\n", "\r\n"), ("claims", "new"), {"accessModes": ["ReadWriteMany"]}),
        (
            TEAM.replace(
                "secrets: [huggingface, lidar-s3]", "secrets:\n# ours\n- huggingface  # token\n# last"
            ),
            ("secrets",),
            ("more",),
        ),
        (CATALOG, ("images", "new"), {"repository": "a/b", "digest": "sha256:0"}),
        (CLUSTER, ("registries",), ("registry.example.com",)),
        (CLUSTER, ("teams", "nlp", "podSecurity"), {"level": "baseline"}),
        (CLUSTER, ("nodePools", "a100", "fabric"), "ib"),
        ("apiVersion: gangplan.dev/v1\nkind: Team\nclaims: {}\n", ("claims", "new"), {"size": "1Gi"}),
        ("apiVersion: gangplan.dev/v1\nkind: Team\nclaims:\n", ("claims", "new"), {"size": "1Gi"}),
    ],
)
def test_a_suggestion_changes_only_what_it_states(text: str, path: tuple[str, ...], value: Any) -> None:
    after = insert_import_suggestion(text.encode(), Suggestion("f.yaml", path, value, "", Location("f.yaml")))
    assert after is not None
    before, now = plain.load(text), plain.load(after)
    holder, old = now, before
    for part in path[:-1]:
        holder, old = holder[part], (old or {}).get(part)
    if isinstance(value, tuple):
        assert holder[path[-1]] == [*((old or {}).get(path[-1]) or []), *value]
        holder[path[-1]] = (old or {}).get(path[-1])
    else:
        assert holder.pop(path[-1]) == value
    for comment in [line for line in text.splitlines() if "#" in line]:
        assert comment in after.decode()
    assert after.decode().count("\r\n") in (0, after.decode().count("\n"))


def test_a_contradicting_suggestion_is_not_placed() -> None:
    """It is reported as import-unplaced."""
    one = Suggestion(
        "f.yaml", ("claims", "filings"), {"accessModes": ["ReadOnlyMany"]}, "", Location("f.yaml")
    )
    assert insert_import_suggestion(TEAM.encode(), one) is None


def test_a_suggestion_that_is_already_met_changes_nothing() -> None:
    one = Suggestion("f.yaml", ("secrets",), ("huggingface",), "", Location("f.yaml"))
    assert insert_import_suggestion(TEAM.encode(), one) == TEAM.encode()
