"""What an edit does to runs: which start, are kept, end, or train again."""

from __future__ import annotations

from gangplan.rules.model import ERROR, NOTE, WARNING, Example, Rule

_SECOND = "apiVersion: gangplan.dev/v1\nkind: TrainingJob\nimage: openmpi\ncommand: [python, train.py]\nworkers: 2\n"
_STOPPED = f"{_SECOND}state: stopped\n"

RETIRED_UNKNOWN = Rule(
    "retired-unknown",
    ERROR,
    "A run listed as over is no earlier run of the job.",
    why=(
        "Each run in the list becomes a record, which ends it. A name of another job, or of the run that "
        "the spec itself describes, would end something else than was meant."
    ),
    fix="List earlier runs of this job alone; gangplan retire finds them.",
    is_verdict=True,
    example=Example(
        "specs/nlp/filings.yaml",
        before="retired: [quarterly-0a1b2c3d]\n",
        after="description: Nothing is over yet\n",
    ),
)

RETIRED_LOST = Rule(
    "retired-lost",
    ERROR,
    "Nobody knows what a run listed as over was.",
    why=(
        "A record must have the fields of its run that no update may change. With others, the server refuses "
        "to compare the two, Argo CD then compares nothing of the team, and the run goes on."
    ),
    fix="Let gangplan retire --write list runs: it brings their files in rendered/ back from Git.",
    is_verdict=True,
    example=Example(
        "specs/nlp/filings.yaml",
        before="retired: [filings-0a1b2c3d]\n",
        after="description: Nothing is over yet\n",
    ),
)

RUN_STARTED = Rule(
    "run-started",
    NOTE,
    "A new run starts.",
    why="Whatever is new in Git is applied at the next sync: the run joins its queue and trains.",
    fix="Nothing needs to be done.",
    example=Example(
        "specs/nlp/second.yaml",
        before=_SECOND,
        after=None,
        whole=True,
        run="since",
    ),
)

RUN_STOPPED = Rule(
    "run-stopped",
    NOTE,
    "A run is stopped.",
    why=(
        "state: stopped ends a run, whether it waits or trains. Its pods and its place in the queue go; a "
        "record of it stays, in Git and on the cluster, and starts nothing."
    ),
    fix="Nothing needs to be done; gangplan retire prepares the removal of the record.",
    example=Example(
        "specs/nlp/filings.yaml",
        before="state: stopped\n",
        after="description: Nothing else\n",
        run="since",
    ),
)

RUN_RESUMED = Rule(
    "run-resumed",
    WARNING,
    "A stopped run starts again.",
    why=(
        "The run was over for Git. Taken back to active it trains again under the same name, from its latest "
        "checkpoint if it has one."
    ),
    fix="Write state: stopped again if that is not meant; raise run: for a run with a name of its own.",
    example=Example(
        "specs/nlp/second.yaml",
        before=_SECOND,
        after=_STOPPED,
        whole=True,
        run="since",
        files={"specs/nlp/second.yaml": _STOPPED},
    ),
)

RUN_RETIRED = Rule(
    "run-retired",
    NOTE,
    "The record of a run that is over leaves Git and the cluster.",
    why=(
        "A record counts against the number of runs that a namespace may hold. Once its file is gone the "
        "engine deletes it; Git's history has what it was."
    ),
    fix="Nothing needs to be done.",
    example=Example(
        "specs/nlp/second.yaml",
        before=None,
        after=_STOPPED,
        whole=True,
        run="since",
        files={"specs/nlp/second.yaml": _STOPPED},
    ),
)

RUN_COUNT = Rule(
    "run-count",
    ERROR,
    "A namespace has no room for all runs that Git has for it.",
    why=(
        "A ResourceQuota counts TrainJobs and what belongs to them, ended ones included. Once it is full, "
        "the API server refuses every further run, and the sync fails. It is a warning from 90 % on."
    ),
    fix="Retire runs that are over with gangplan retire, or raise limits: {objects: {runs: ...}}.",
    is_verdict=True,
    example=Example(
        "overlays/lab/cluster.yaml",
        before="limits: {objects: {runs: 1}}\n",
        after="limits: {objects: {runs: 3}}\n",
        files={"specs/nlp/second.yaml": _SECOND},
    ),
)
