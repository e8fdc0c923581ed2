"""The key figures of one run, for storing and adding up: one job on one cluster."""

from __future__ import annotations

from decimal import Decimal

from gangplan.records import dataclass

SECONDS = 3600
NANOSECONDS = 10**9


@dataclass(frozen=True, slots=True)
class RunFacts:
    """One run as it is planned and named.

    `source` is its spec, and `state` the state there: active, stopped or archived. `gpus` and `cpu_nano`
    (cores x 10^9) are those of all workers together, `seconds` the longest that the run uses them. `cost` is
    the most that this costs, in `currency`; empty without a price. `outcome` is Kueue's on an idle cluster:
    admit or never, empty if the objects are invalid; `verdict` says so in words. `retired` are earlier runs
    that are over.

    `schedule` is cron and time zone, separated by a space, if a CronJob starts runs; `kept` is how many of
    them stay in the cluster, including one that is not over. `repeats` is the same as `schedule`, regardless
    of what starts the runs. `step_gpus` are the requests of steps in addition to the workers';
    `other_cpu_nano` are those of steps and of a launcher without ranks, in the workers' pool; the seconds are
    the most GPU-seconds, and seconds of billionths of cores, that these use. `after` are the jobs that the
    run waits for, separated by spaces. `made_of` is its backend, `config_maps` are those in its file, and
    `uses_mpi` says whether a launcher starts its ranks over SSH.
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
    other_cpu_nano: int = 0
    step_gpu_seconds: int = 0
    other_cpu_seconds: int = 0
    config_maps: int = 0
    uses_mpi: bool = False
    retired: tuple[str, ...] = ()  # the last field: stored values depend on that (pipeline/stored.py)

    @property
    def key(self) -> tuple[str, str, str]:
        """What is the same for all runs of a job: cluster, team, job."""
        return self.cluster, self.team, self.job

    @property
    def is_active(self) -> bool:
        """Whether it is neither stopped nor archived, so that it runs or has run."""
        return self.state == "active"

    @property
    def path(self) -> str:
        """The path of its file in the tree."""
        return f"{self.cluster}/runs/{self.team}/{self.name}.yaml"

    @property
    def gpu_seconds(self) -> int:
        """The most GPU-seconds that it uses, exactly."""
        return self.gpus * self.seconds + self.step_gpu_seconds

    @property
    def cpu_seconds(self) -> int:
        """The most seconds of billionths of cores that it uses, exactly."""
        return self.cpu_nano * self.seconds + self.other_cpu_seconds

    @property
    def gpu_hours(self) -> Decimal:
        """The most GPU-hours that it uses, exactly."""
        return Decimal(self.gpu_seconds) / SECONDS

    @property
    def cpu_hours(self) -> Decimal:
        """The most CPU-hours that it uses, exactly."""
        return Decimal(self.cpu_seconds) / NANOSECONDS / SECONDS
