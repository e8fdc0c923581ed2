"""What a run amounts to, in a few words that can be kept and added up: of one job on one cluster."""

from __future__ import annotations

from decimal import Decimal

from gangplan.records import dataclass

SECONDS = 3600
NANO = 10**9


@dataclass(frozen=True, slots=True)
class RunFacts:
    """One run as it is planned and named.

    `source` is its spec. `state` is what that says: active, stopped or archived. `gpus` and `cpu_nano`
    (cores x 10^9) are of all workers together, `seconds` the longest that it holds them. `cost` is at most
    that, in `currency`; empty without a price. `outcome` is Kueue's on an idle cluster: admit or never, empty
    where the objects are invalid; `verdict` says so in words. `retired` are earlier runs that are over.
    `schedule` is cron and time zone, with a blank between, where a CronJob starts runs; `kept` how many
    of them stay in the cluster, with one that is not over. `repeats` is the same as `schedule`, whatever
    starts the runs. `step_gpus` and `step_cpu_nano` are what steps ask for beside the workers, in their pool;
    the seconds are those that steps hold GPUs, and billionths of cores, at most. `after` are the jobs that it
    comes after, with blanks between. `made_of` is its backend.
    """

    source: str
    cluster: str
    team: str
    job: str
    name: str
    spec_hash: str
    state: str
    workers: int
    ranks: int
    gpus: int
    cpu_nano: int
    seconds: int
    cost: str
    currency: str
    pool: str
    queue: str
    priority: str
    image: str
    outcome: str
    verdict: str
    schedule: str = ""
    kept: int = 0
    repeats: str = ""
    after: str = ""
    made_of: str = "trainjob"
    step_gpus: int = 0
    step_cpu_nano: int = 0
    step_gpu_seconds: int = 0
    step_cpu_seconds: int = 0
    retired: tuple[str, ...] = ()  # the last: what is kept on disk goes by that (pipeline/stored.py)

    @property
    def key(self) -> tuple[str, str, str]:
        """What stays the same from one run of a job to the next: cluster, team, job."""
        return self.cluster, self.team, self.job

    @property
    def is_active(self) -> bool:
        """Whether it is neither stopped nor archived, so that it runs or has run."""
        return self.state == "active"

    @property
    def path(self) -> str:
        """Where it stands in the tree."""
        return f"{self.cluster}/runs/{self.team}/{self.name}.yaml"

    @property
    def gpu_seconds(self) -> int:
        """The most that it takes, exactly."""
        return self.gpus * self.seconds + self.step_gpu_seconds

    @property
    def cpu_seconds(self) -> int:
        """The same of billionths of cores."""
        return self.cpu_nano * self.seconds + self.step_cpu_seconds

    @property
    def gpu_hours(self) -> Decimal:
        """The most that it takes, exactly."""
        return Decimal(self.gpu_seconds) / SECONDS

    @property
    def cpu_hours(self) -> Decimal:
        """The same in hours of cores."""
        return Decimal(self.cpu_seconds) / NANO / SECONDS
