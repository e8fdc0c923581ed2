"""The steps of a pipeline: one for each job that waits for others, and one for each job that is waited
for."""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.model.schedule import CHECK_PAUSE_S, TEMPLATE_MOUNT
from gangplan.records import dataclass

# The placeholder for the template of a run that an engine creates.
NO_TEMPLATE = "-"


@dataclass(frozen=True, slots=True)
class PipelineStep:
    """A job whose run is waited for, and created first if it `is_held`.

    A sweep has several `runs`. `context` is what a kubeconfig calls the cluster of the run; empty on the
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
        """The name of the ConfigMap with the template of the run."""
        return f"{self.runs[0]}-template"

    @property
    def template(self) -> str:
        """Where the script finds the template: a file here, an object elsewhere, or nothing."""
        if not self.is_held:
            return NO_TEMPLATE
        return f"configmap/{self.config_map}" if self.context else TEMPLATE_MOUNT

    @property
    def words(self) -> tuple[str, ...]:
        """The arguments of the script, which also waits for the run."""
        return (self.template, self.runs[0], "wait", str(CHECK_PAUSE_S), *self.runs[1:])


@dataclass(frozen=True, slots=True)
class Chain:
    """All steps of a team on a cluster, each after the steps that it waits for.

    `client` is the image with kubectl, by digest; `uid` and `gid` are those of its user. `labels` are those
    of the team's pods, for policies and for the way to the API server. `script` does the work.
    """

    cluster: str
    team: str
    namespace: str
    client: str
    uid: int
    gid: int
    labels: tuple[tuple[str, str], ...]
    script: str
    steps: tuple[PipelineStep, ...]

    @property
    def name(self) -> str:
        """The name of the pipeline."""
        return f"gangplan-{self.team}"

    @property
    def reaches_out(self) -> bool:
        """Whether a step needs another cluster."""
        return any(step.context for step in self.steps)


def sort_pipeline_steps(steps: Sequence[PipelineStep]) -> tuple[PipelineStep, ...]:
    """Sort steps by name, each after the steps that it waits for.

    Raises ValueError for a cycle, which a rule reports earlier.
    """
    done: dict[str, PipelineStep] = {}
    left = sorted(steps, key=lambda one: one.name)
    while left:
        ready = [one for one in left if done.keys() >= set(one.after)]
        for one in ready:
            done[one.name] = one
        if not ready:
            raise ValueError("steps wait for each other")  # a rule reports this earlier
        left = [one for one in left if one.name not in done]
    return tuple(done.values())
