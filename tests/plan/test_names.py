"""Name budgets: the longest job name that still gives valid pod names, and not one character more."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given

from gangplan.errors import Exit
from gangplan.model.backend import BACKEND_BY_HOLDER, BACKEND_BY_KIND
from gangplan.objects import Body, dump_object_as_block_yaml
from gangplan.plan.names import hash_content_for_run_name
from tests import workspaces
from tests.test_objects import bodies, values
from tests.workspaces import gangplan, write


@pytest.mark.parametrize(
    ("image", "workers", "more", "budget"),
    [
        ("openmpi", 1, "", 35),
        ("openmpi", 10, "", 35),
        ("openmpi", 100, "", 35),
        ("openmpi", 4, "launcher: {runsRanks: true}", 35),
        ("pytorch", 1, "", 39),
        ("pytorch", 10, "", 39),
        ("pytorch", 11, "", 38),
        ("pytorch", 100, "", 38),
    ],
)
def test_the_longest_name_passes_and_one_character_more_fails(
    image: str, workers: int, more: str, budget: int, root: Path
) -> None:
    spec = workspaces.SPEC.replace("image: openmpi", f"image: {image}").replace(
        "workers: 4", f"workers: {workers}"
    )
    write(root, {"overlays/lab/cluster.yaml": workspaces.WIDE_CLUSTER})
    for length, code in ((budget, Exit.CLEAN), (budget + 1, Exit.INPUT)):
        write(root, {"specs/nlp/filings.yaml": f"{spec}{more}\nname: {'n' * length}\n"})
        outcome = gangplan("plan", "-C", root)
        assert outcome.code == code, outcome.err
    assert outcome.errors() == [("specs/nlp/filings.yaml:10:7", "name-too-long")]
    assert f"at most {budget} fit" in outcome.err
    # What JobSet's webhook computes for the pods of the longest accepted name.
    longest = {"openmpi": "-launcher-0-0-abcde", "pytorch": f"-node-0-{workers - 1}-abcde"}[image]
    assert budget + len("-12345678") + len(longest) == 63


@given(bodies, values, bodies)
@example({"spec:x": 1}, ["a", ["b"]], {"--x": 1})
@example({"a": "b\nspec:\n  c\n"}, {"script": "one\n\nspec: two\n"}, {"-": [1]})
@example({}, None, {"status": {}})
def test_the_hash_of_objects_and_of_their_text_agree(before: Body, spec: object, after: Body) -> None:
    """They agree wherever the spec is in its object, and whatever it contains."""
    for kind in (*BACKEND_BY_HOLDER, *BACKEND_BY_KIND, "ConfigMap", "NetworkPolicy"):
        own = {"apiVersion": "v1", "kind": kind}
        body = {**own, **before, **own, "spec": spec, **{name: after[name] for name in after.keys() - own}}
        assert hash_content_for_run_name(
            [body], 1, [dump_object_as_block_yaml(body)]
        ) == hash_content_for_run_name([body], 1)
