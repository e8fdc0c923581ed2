"""The steps of a pipeline: one for each job that comes after others, and for those that they come after."""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.model.schedule import MOUNT, PAUSE_S
from gangplan.records import dataclass

# What stands for the template of a run that an engine creates.
NO_TEMPLATE = "-"


@dataclass(frozen=True, slots=True)
class Step:
    """A job whose run is waited for, and created where it `is_held`.

    `runs` are several for a sweep. `context` is what a kubeconfig calls the cluster of the run; empty on the
    cluster that the pipeline runs on. `after` are names of other steps.
    """

    name: str
    source: str
    runs: tuple[str, ...]
    after: tuple[str, ...] = ()
    is_held: bool = False
    context: str = ""

    @property
    def config_map(self) -> str:
        """The ConfigMap with the template of the run."""
        return f"{self.runs[0]}-template"

    @property
    def template(self) -> str:
        """Where the script finds the template: a file here, an object elsewhere, or nothing."""
        if not self.is_held:
            return NO_TEMPLATE
        return f"configmap/{self.config_map}" if self.context else MOUNT

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the script: it waits for the run, too."""
        return (self.template, self.runs[0], "wait", str(PAUSE_S), *self.runs[1:])


@dataclass(frozen=True, slots=True)
class Chain:
    """All steps of a team on a cluster, each behind those that it comes after.

    `client` is the image with kubectl, by digest; `uid` and `gid` are those of its user. `labels` are those
    that pods of the team have, for policies and for the way to the API server. `script` does the work.
    """

    cluster: str
    team: str
    namespace: str
    client: str
    uid: int
    gid: int
    labels: tuple[tuple[str, str], ...]
    script: str
    steps: tuple[Step, ...]

    @property
    def name(self) -> str:
        """What the pipeline is called."""
        return f"gangplan-{self.team}"

    @property
    def reaches_out(self) -> bool:
        """Whether a step is about another cluster."""
        return any(step.context for step in self.steps)


def in_order(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Steps behind those that they come after, and else by name."""
    done: dict[str, Step] = {}
    left = sorted(steps, key=lambda one: one.name)
    while left:
        ready = [one for one in left if done.keys() >= set(one.after)]
        for one in ready:
            done[one.name] = one
        if not ready:
            raise ValueError("steps wait for each other")  # a rule says so before
        left = [one for one in left if one.name not in done]
    return tuple(done.values())
