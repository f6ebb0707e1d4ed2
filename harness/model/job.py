"""Jobs: the run specification that goes into ``point.json``, job states and their order, exit evidence."""

from enum import Enum
from typing import Literal

from pydantic import Field

from harness.model.axes import Axes, Count, Frozen, PositiveInt
from harness.model.names import attempt_name as attempt_name
from harness.model.names import group_job_name as group_job_name
from harness.model.names import job_name as job_name

POINT_SCHEMA = 1


class Placement(Frozen):
    """A point placed on a cluster: the request a job script is rendered from. Units are in the names."""

    cluster: str
    queue: str | None = None
    account: str | None = None
    project: str | None = None
    nodes: PositiveInt
    ranks_per_node: PositiveInt
    cores_per_node: PositiveInt
    gpus_per_node: Count = 0
    memory_bytes: PositiveInt | None = Field(None, description="memory per node")
    walltime_s: PositiveInt
    data_path: str = Field(description="directory of the data set inside the chosen storage")
    data_scope: Literal["shared", "node"] = "shared"
    stage_from: str | None = Field(None, description="directory that the data set is staged from, inside the job")

    @property
    def ranks(self) -> int:
        return self.nodes * self.ranks_per_node

    @property
    def cores_per_rank(self) -> int:
        return self.cores_per_node // self.ranks_per_node


class RunSpec(Frozen):
    """The content of ``point.json``: all that the compute side knows about its run."""

    schema_version: int = POINT_SCHEMA
    campaign: str
    campaign_uid: str = ""
    point_id: str
    repeat: Count
    attempt: PositiveInt
    axes: Axes
    placement: Placement
    harness_version: str
    git_commit: str | None = None

    @property
    def seed(self) -> int:
        """Seed of this repeat."""
        return self.axes.seed + self.repeat

    @property
    def attempt_name(self) -> str:
        return attempt_name(self.repeat, self.attempt)

    @property
    def job_name(self) -> str:
        return job_name(self.campaign, self.point_id, self.repeat, self.attempt, self.campaign_uid)


class JobState(str, Enum):
    """States of a job. The order is INTENDED < QUEUED < RUNNING < all ended states."""

    INTENDED = "INTENDED"
    QUEUED = "QUEUED"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    TIMED_OUT = "TIMED_OUT"
    CANCELLED = "CANCELLED"
    LOST = "LOST"

    @property
    def rank(self) -> int:
        return _RANKS.get(self, 3)

    @property
    def ended(self) -> bool:
        return self.rank == 3


_RANKS = {JobState.INTENDED: 0, JobState.QUEUED: 1, JobState.RUNNING: 2}


def advance(old: JobState, new: JobState) -> JobState:
    """The state after an observation: a late or repeated one never moves a job back; only LOST may be lifted."""
    if old is JobState.LOST and new.ended:
        return new
    return new if new.rank > old.rank else old


class Observation(Frozen):
    """What a scheduler said about one job at one time.

    ``state`` None means the scheduler does not know the job: never success, evidence decides.
    """

    job_id: str
    state: JobState | None
    native_state: str = Field("", description="the scheduler's own word")
    exit_status: int | None = None
    reason: str = Field("", description="the scheduler's comment or reason, for people")
    never_runnable: bool = Field(False, description="queued but cannot ever start, such as PBS Can Never Run")
    job_name: str = ""
    elements: PositiveInt = Field(1, description="jobs that it stands for: an array's that have not ended")
    if_unbegun: bool = Field(False, description="true of a job only if it never began; else the scheduler is silent")


class ExitRecord(Frozen):
    """The content of ``exit.json``, written by the job script's shell when the launcher has returned.

    ``cause``: exit (the launcher returned by itself), term (the job was told to stop), setup (staging, modules or
    another step before the launcher failed).
    """

    code: int
    cause: Literal["exit", "term", "setup"]
    started_unix_s: float
    ended_unix_s: float
    host: str
    job_id: str = ""
    message: str = ""
