"""Every rule's example with its help pasted in: the finding is gone, and there is no new one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from gangplan.findings import Finding
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.rulebook import find_rule_example, group_built_in_rules_by_topic
from gangplan.rules.model import Rule
from tests.mistakes.proposals import UnreadError, pasted
from tests.rules.worlds import put

# Rules whose help leads to another finding, or cannot be pasted at the finding, and why.
THEN = {
    "checkpoint": "the finding that follows asks whether such a long run saves its state",
    "adapters": "runs with RDMA are warned about traffic that no policy sees, which nobody could say before",
    "quota": "another place for the launcher is a question of quota",
}
EXCUSED = {
    "timeout-over-limit": THEN["checkpoint"],
    "timeout-not-extended": THEN["checkpoint"],
    "fabric-node-shared": THEN["adapters"],
    "rdma-devices": THEN["adapters"],
    "rdma-with-tcp": "the first way keeps rdma: required, for which this cluster has no pool",
    "concurrent-admission-refused": THEN["quota"],
    "preemption-contradicts": "the first way leaves a setting that fair sharing does not look at: a note",
    "spot-without-retry": "production on spot nodes is a question of its own, asked once the run survives",
    "template-unusable": "the example's template has nothing but the name",
    "jobset-pair": "the line of versions is one mapping, and the finding stands at its key",
    "device-class-unusable": "topology is the pool's, and the finding stands next to it",
    "policy-obstructs": "the policy of the example is a text inside a patch",
    "policies-none": "the packs ask for owners, which the file of this team does not name",
    "team-not-on-cluster": "the line belongs to a file of some cluster, and the finding stands at the team",
    "multikueue-self": "the example lists no other cluster, and a list cannot be empty",
    "command-reserved": "an option and its values are several words, and the finding stands at the first",
}


def _of(findings: list[Finding]) -> Counter[tuple[str, str]]:
    return Counter((one.rule, one.message) for one in findings)


def _leads_to(rule: Rule, root: Path) -> Counter[tuple[str, str]] | None:
    """Return what is found only after the help of an example is followed, and the finding itself if it is
    still there; None if a program cannot follow the help."""
    example = find_rule_example(rule)
    assert example
    put(root, example, "before")
    before = preview_render(Request(root, engine="serial")).findings
    broken = next((one for one in before if one.rule == rule), None)
    if broken is None or not (root / broken.where.file).is_file() or not broken.where.file.endswith(".yaml"):
        return None
    path = root / broken.where.file
    try:
        path.write_text(pasted(path.read_text(), broken))
    except UnreadError:
        return None
    after = _of(preview_render(Request(root, engine="serial")).findings)
    still = {key: count for key, count in after.items() if key == (rule, broken.message)}
    return after - _of(before) + Counter(still)


@pytest.mark.parametrize("topic", group_built_in_rules_by_topic())
def test_following_the_help_of_an_example_removes_the_finding(topic: str, tmp_path: Path) -> None:
    worse = {}
    for rule in group_built_in_rules_by_topic()[topic].values():
        example = find_rule_example(rule)
        if example and example.run == "validate" and (found := _leads_to(rule, tmp_path / rule)):
            worse[str(rule)] = sorted(found)
    excused = {rule for rule in EXCUSED if rule in group_built_in_rules_by_topic()[topic]}
    assert {rule: found for rule, found in worse.items() if rule not in excused} == {}
    assert excused <= set(worse), "an excuse that nobody needs"
