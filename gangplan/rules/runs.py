"""Rules about what an edit does to runs: which start, stop, resume, or retire."""

from __future__ import annotations

from gangplan.rules.model import ERROR, NOTE, WARNING, Rule

RETIRED_UNKNOWN = Rule(
    "retired-unknown",
    ERROR,
    "A run listed as over is not an earlier run of the job.",
    why=(
        "Each run in the list becomes a record, which ends the run. The name of another job's run, or of the run that "
        "the spec itself describes, would end the wrong run."
    ),
    fix="List only earlier runs of this job; gangplan retire finds them.",
    is_verdict=True,
)

RETIRED_LOST = Rule(
    "retired-lost",
    ERROR,
    "The objects of a run listed as over are lost.",
    why=(
        "A record must have the fields of its run that no update may change. Otherwise, the server refuses "
        "to compare the two, Argo CD then compares none of the team's objects, and the run goes on."
    ),
    fix="Let gangplan retire --write list runs: it restores their files in rendered/ from Git.",
    is_verdict=True,
)

LAUNCH_SCRIPTS_LOST = Rule(
    "launch-scripts-lost",
    ERROR,
    "The launch scripts of a run that is kept are gone, or were changed.",
    why=(
        "A run mounts the scripts that it began with, from a ConfigMap whose name ends in their hash. Without "
        "it, pods wait for the volume until the run's timeout; with other scripts, they end with code 193."
    ),
    fix="Bring the file back from Git, or let the job run again: raise run: in its spec.",
    is_verdict=True,
    untested="it takes two releases of gangplan with different scripts; tests/test_launch_maps.py has them.",
)

RUN_STARTED = Rule(
    "run-started",
    NOTE,
    "A new run starts.",
    why="Whatever is new in Git is applied at the next sync: the run joins its queue and trains.",
    fix="Nothing needs to be done.",
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
)

RUN_RESUMED = Rule(
    "run-resumed",
    WARNING,
    "A stopped run starts again.",
    why=(
        "According to Git, the run was over. Set to active again, it trains under the same name, from its latest "
        "checkpoint if it has one."
    ),
    fix="Write state: stopped again if you did not mean this; raise run: for a run with a name of its own.",
)

RUN_RETIRED = Rule(
    "run-retired",
    NOTE,
    "The record of a run that is over leaves Git and the cluster.",
    why=(
        "A record counts against the number of runs that a namespace may hold. Once its file is gone the "
        "engine deletes the record; Git's history keeps it."
    ),
    fix="Nothing needs to be done.",
)

RUN_COUNT = Rule(
    "run-count",
    ERROR,
    "A namespace has no room for all the runs that it has in Git.",
    why=(
        "A ResourceQuota counts TrainJobs and what belongs to them, ended ones included; one of ConfigMaps or "
        "Secrets also counts the hostfile and the SSH keys of each run by MPI. Once it is full, the API server "
        "refuses every further run, and the sync fails. gangplan warns from 90 % on."
    ),
    fix="Retire runs that are over with gangplan retire, or raise limits: {objects: {runs: ...}}.",
    is_verdict=True,
)
