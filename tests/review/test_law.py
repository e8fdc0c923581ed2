"""The law of a review: what a change adds is the state after it minus the state before it."""

from __future__ import annotations

import json
import shutil
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gangplan.errors import Exit
from tests import workspaces
from tests.review.repository import Repository
from tests.workspaces import CLUSTER, gangplan

SPECS = st.builds(
    lambda workers, gpus, hours, state, words: (
        "apiVersion: gangplan.dev/v1\nkind: TrainingJob\nimage: openmpi\ncommand: [python, train.py]\n"
        f"workers: {workers}\ngpus: {gpus}\ncpu: 3\nmemory: 8Gi\ntimeout: {hours}h\n"
        f"description: {words}\n{f'state: {state}' if state else ''}\n"
    ),
    st.integers(1, 3),
    st.integers(0, 2),
    st.integers(1, 5),
    st.sampled_from(["", "", "stopped", "archived"]),
    st.sampled_from(["one", "two"]),
)
TREES = st.dictionaries(st.sampled_from(["a", "b", "c"]), SPECS, max_size=3)


def tree(root: Path, specs: dict[str, str], digest: str) -> None:
    """Write the workspace with these specs."""
    shutil.rmtree(root / "specs/nlp", ignore_errors=True)
    workspaces.stock(root, "specs/nlp/filings.yaml")
    files = {f"specs/nlp/{name}.yaml": text for name, text in specs.items()}
    catalog = workspaces.CATALOG.replace("332211ffee", digest)
    workspaces.write(root, {**files, "overlays/lab/cluster.yaml": CLUSTER, "images/catalog.yaml": catalog})


def totals(root: Path) -> dict[str, Any]:
    """Return what the active runs of a workspace take, from its plan alone."""
    document = json.loads(gangplan("plan", "-C", root, "--format", "json").out)
    runs = [one for one in document["runs"] if not one["edit"].startswith(("stopped", "archived"))]
    gpus = [(int(one["totals"].get("nvidia.com/gpu", 0)), one["timeoutSeconds"]) for one in runs]
    hours = sum((Decimal(count * seconds) / 3600 for count, seconds in gpus), Decimal(0))
    return {"runs": len(runs), "gpus": sum(count for count, _ in gpus), "gpuHours": hours}


@settings(max_examples=15, deadline=None)
@given(TREES, TREES, st.sampled_from(["332211ffee", "332211ffef"]), st.booleans())
def test_totals_are_those_of_each_side(
    before: dict[str, str], after: dict[str, str], digest: str, is_rendered: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        repo = Repository(Path(folder))
        tree(repo.root, before, "332211ffee")
        gangplan("render", "-C", repo.root)
        old = totals(repo.root)
        (repo.top / ".gitignore").write_text(".gangplan/\n")
        repo.git("init", "-q", "-b", "main")
        repo.commit()
        tree(repo.root, after, digest)
        new = totals(repo.root)
        if is_rendered:
            assert gangplan("render", "-C", repo.root).code == Exit.CLEAN
        found = repo.review(base="HEAD")
        told = {
            side: {**one, "gpuHours": Decimal(one["gpuHours"])}
            for side, one in found["totals"]["all"].items()
        }
        for name in ("runs", "gpus", "gpuHours"):
            assert told["before"][name] == old[name]
            assert told["after"][name] == new[name]
        by_team = [one["after"]["gpus"] - one["before"]["gpus"] for one in found["totals"]["teams"]]
        assert sum(by_team) == new["gpus"] - old["gpus"]
        changed = {
            one["job"]: (one["after"] or {}).get("gpus", 0) * ((one["after"] or {}).get("state") == "active")
            - (one["before"] or {}).get("gpus", 0) * ((one["before"] or {}).get("state") == "active")
            for one in found["runs"]
            if one["edit"] != "retired"
        }
        assert sum(changed.values()) == new["gpus"] - old["gpus"], "the edits add up to the difference"
