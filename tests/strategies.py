"""Valid specs for the small workspace of tests.workspaces, as dictionaries."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import strategies as st

from gangplan.spec.lookalikes import describe_typesetting

IMAGES = {"openmpi": "mpi", "openmpi4": "mpi", "mpich": "mpi", "horovod": "horovod", "deepspeed": "deepspeed"}
# Words that a shell, YAML, jinja or a number parser might change.
NASTY = (
    "007", "1e-4", "1_000", "0x1F", "yes", "null", "~", "", " ", "a b", "$1", "$(", "$$", "x`", "'",
    '"', "\\n", "{ranks}", "{{ x }}", "{% x %}", "<&>", "a: b", "# no", "- a", "*", "&a", "!x", "--lr=1e-4",
    "é", "東京", "checkpoint-00000000", "a\tb", "a\nb\n", "gp0x1x0gp", "filings-00000000", "\u2028", "🚀",
)  # fmt: skip
NETWORKS = ({"posture": "restricted"}, {"posture": "isolated"}, {"egress": ["s3"]}, {"transport": "tcp"})
# Words that gangplan takes neither for a shell's ($HOME, `date`, ~/data, <path>, {rank}, |, &&) nor for a
# word processor's («train.py»).
words = st.sampled_from(NASTY) | st.text(
    st.characters(min_codepoint=32, max_codepoint=0x2FF, exclude_categories=("Cs", "Cc")), max_size=12
).filter(
    lambda word: (
        not describe_typesetting(word)
        and not re.search(r"\$[A-Z_{(]|`.*`|^~/|[<{]|^[0-9&]*[|&;>]+[0-9&]*$", word)
    )
)
names = st.from_regex(r"[a-z]([-a-z0-9]{0,20}[a-z0-9])?", fullmatch=True)
env_names = st.from_regex(r"[A-Z][A-Z0-9_]{0,12}", fullmatch=True).map(lambda name: f"MY_{name}")


@st.composite
def specs(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a spec that the small workspace accepts."""
    image = draw(st.sampled_from([*IMAGES, "pytorch", "intel"]))
    gpus = draw(st.sampled_from([0, 1, 2, 4, 8]))
    workers = draw(st.integers(1, 100))
    spec: dict[str, Any] = {
        "apiVersion": "gangplan.dev/v1",
        "kind": "TrainingJob",
        "image": image,
        "command": ["python", *draw(st.lists(words, max_size=4))],
        "workers": workers,
        "gpus": gpus,
        "cpu": draw(st.sampled_from([1, "0.5", "250m", 8, "60"])),
        "memory": draw(st.sampled_from(["1Gi", "512Mi", "1.5Gi", "100G", "64Gi"])),
    }
    optional = {
        "name": names.filter(lambda name: len(name) <= 22),
        "slots": st.integers(1, 16),
        "env": st.dictionaries(env_names, words, max_size=4),
        "data": st.just({"filings": "/data"}),
        "secrets": st.just({"env": {"HF_TOKEN": "huggingface/token"}}),
        "checkpoint": st.just({"to": "filings", "path": "/ckpt"}),
        "network": st.sampled_from(NETWORKS),
        "priority": st.sampled_from(["low", "normal", "high"]),
        "timeout": st.sampled_from(["1h", "24h", "90m", "1h30m"]),
        "retries": st.integers(0, 3),
        "labels": st.dictionaries(names, names, max_size=2),
        "run": st.integers(1, 99),
        "description": words,
        "state": st.sampled_from(["active", "stopped", "archived"]),
    }
    for field in draw(st.lists(st.sampled_from(sorted(optional)), unique=True, max_size=6)):
        spec[field] = draw(optional[field])
    if gpus and image in ("pytorch", "horovod", "deepspeed") and "slots" in spec:
        spec["slots"] = min(spec["slots"], gpus)  # NCCL takes no more
    if image == "intel":
        spec["mpi"] = {"licenseAcknowledged": True}
    if image != "pytorch" and workers > 1 and draw(st.booleans()):
        spec["launcher"] = {"runsRanks": True}
    return spec
