"""Rules about changes that meet: a stale `rendered/`, and unfinished merges."""

from __future__ import annotations

from gangplan.rules.model import ERROR, WARNING, Rule

RENDERED_STALE = Rule(
    "rendered-stale",
    WARNING,
    "rendered/ is not what the workspace renders now.",
    why=(
        "The GitOps engine applies rendered/ and nothing else. Where it is stale, a merge does not do what "
        "the plan says. Two changes that were each rendered can become stale when they meet: Git merges lines, "
        "and forges do so without asking a merge driver. With render --check this is an error."
    ),
    fix="Run gangplan render, and commit rendered/ together with the files that it comes from.",
    is_verdict=True,
)

MERGE_CONFLICT = Rule(
    "merge-conflict",
    ERROR,
    "A file has merge conflicts.",
    why=(
        "Git wrote both versions into the file, or could not decide under which name to keep it. What it holds "
        "was never reviewed, and in rendered/ it would be applied."
    ),
    fix=(
        "In files that people write, keep one version or join both, and remove Git's marker lines. rendered/ needs no "
        "such work: settle the other files, run gangplan render, and git add rendered/."
    ),
    is_verdict=True,
)

SPEC_SPLIT = Rule(
    "spec-split",
    WARNING,
    "One spec became two with the same contents.",
    why=(
        "When two branches give a file different names, Git keeps both. Both jobs then train, although one was "
        "meant."
    ),
    fix="Remove one of the files and render; if two jobs are meant, nothing needs to be done.",
    untested="it takes a base to compare with; tests/review/test_merges.py merges two renames.",
)
