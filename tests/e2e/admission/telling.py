"""The real side of a story: tell it to a Kueue step by step, and observe what happens."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tests.e2e.admission.plane import PASSING, Plane, reserved
from tests.e2e.admission.plots import Plot
from tests.e2e.admission.question import Question
from tests.e2e.admission.story import State
from tests.lab.client import condition

Object = dict[str, Any]
#: Seconds: how long nothing may happen before a step is over, also if Kueue has not reported on a run (nor
#: will it, if the run is not at the head of a strict queue); how long a step may take.
QUIET, SILENT, LONGEST = 2.5, 10.0, 60.0
#: Seconds from a run's arrival to its Workload on an idle machine. Where this takes longer, everything does.
PROMPT = 0.6


def tell(real: Plane, plot: Plot) -> list[State]:
    """Return what the real Kueue does, step by step."""
    questions = {one.name: one for one in plot.questions}
    found: list[State] = []
    alive: list[Question] = []
    pace = 1.0
    real.build(plot.scene)
    try:
        for number, step in enumerate(plot.steps):
            question = questions[step.run]
            if step.ends:
                alive.remove(question)
                real.remove(question)
            else:
                refusal = real.submit(question)
                assert not refusal, refusal
                alive.append(question)
                pace = max(pace / 2, _arrival(real, question) / PROMPT, 1.0)
            slower = replace(real, patience=real.patience * pace)
            found.append(_settled(slower, alive, found[-1] if found else None, plot.told[number]))
    finally:
        for question in alive:
            real.remove(question)
        real.raze(plot.scene)
    return found


def _arrival(real: Plane, question: Question) -> float:
    """Return the seconds until Kueue has created a run's Workload."""
    began = time.monotonic()
    while real.watcher.workload(question.entry.namespace, question.name) is None:
        time.sleep(0.1)
        if time.monotonic() - began > LONGEST:
            break
    return time.monotonic() - began


def _settled(real: Plane, alive: Sequence[Question], before: State | None, expected: State) -> State:
    """Return the state once nothing more happens: a while after the last change, longer if it is
    unexpected."""
    evicted = before.admitted if before else frozenset()
    began = since = time.monotonic()
    said: Any = None
    state = State(frozenset(), frozenset())
    while time.monotonic() - began < LONGEST * real.patience:
        time.sleep(0.2)
        workloads = {one.name: real.watcher.workload(one.entry.namespace, one.name) for one in alive}
        look = {name: _look(item) for name, item in workloads.items()}
        if look != said:
            said, since = look, time.monotonic()
        admitted = frozenset(name for name, (_, is_in, _) in look.items() if is_in)
        names = frozenset(one.name for one in alive)
        state = State(admitted, (evicted & names) - admitted)
        calm = all(is_in or reason not in ("", *PASSING) for _, is_in, reason in look.values())
        surprises = state != expected
        wait = (QUIET, SILENT, 3 * SILENT, LONGEST)[2 * surprises + (not calm)]
        if time.monotonic() - since > real.patience * wait:
            return state
    return state


def _look(workload: Object | None) -> tuple[str, bool, str]:
    if workload is None:
        return "", False, ""
    return (
        workload["metadata"]["resourceVersion"],
        condition(workload, "Admitted") == "True",
        reserved(workload)[0],
    )
