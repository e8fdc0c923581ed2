"""Import sources, and compare each that imports whole with its run on the lab."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

from tests.lab import build, profiles, programs
from tests.lab.lab import Lab
from tests.wild.corpus import Source
from tests.wild.differences import Pair
from tests.wild.lab import FLAT, KINDS, NODES, Stage
from tests.wild.trial import tried


def run_on_lab(every: Sequence[Source], room: str, into: Path | None) -> int:
    """Compare the pods of sources and runs, print what the reports do not name; return 1 if there is any."""
    profile = profiles.find(profiles.DEFAULT)
    build.ensure((*profile.programs, programs.TRAINING_OPERATOR))
    some = [one for one in every if one.kind in KINDS]
    states: Counter[str] = Counter()
    with Lab(profile, nodes=NODES) as lab:
        lab.add_training_operator()
        stage = Stage(lab)
        for source in some:
            before = len(stage.pairs)
            trial = tried(source, room, partial(stage.look, source.name), FLAT)
            states[f"{source.kind} {trial.state}"] += 1
            if trial.errors:
                print(f"{trial.state}: {source.kind} {source.name}: {trial.errors[0]}", flush=True)
            for pair in stage.pairs[before:]:
                _tell(pair)
        pairs = stage.pairs
    print(f"{len(some)} sources: {dict(states)}")
    found = dict(Counter(one.state for one in pairs))
    print(f"{len(pairs)} jobs: {found}, {sum(one.pods for one in pairs)} pods")
    if into:
        rows = [{**asdict(one), "state": one.state} for one in pairs]
        into.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return int(any(one.state in ("silent", "stuck") for one in pairs))


def _tell(pair: Pair) -> None:
    print(
        f"{pair.state}: {pair.name}: {pair.pods} pods, {len(pair.named)} named: {pair.refused or pair.stuck}",
        flush=True,
    )
    for key, text in pair.silent.items():
        print(f"  {key}: {text}"[:400], flush=True)
