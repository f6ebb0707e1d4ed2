"""A cluster as its YAML file describes it: nodes, queues and their limits, storage, MPI, environment."""

from typing import Literal

from pydantic import Field

from harness.model.axes import Count, Frozen, PositiveInt

SchedulerName = Literal["local", "pbs", "torque", "slurm"]
MpiFlavour = Literal["openmpi4", "openmpi5", "mpich", "intelmpi"]


class NodeType(Frozen):
    """What one compute node has."""

    sockets: PositiveInt = 1
    cores_per_socket: PositiveInt
    gpus: Count = 0
    gpu_model: str = ""
    memory_bytes: PositiveInt | None = None

    @property
    def cores(self) -> int:
        return self.sockets * self.cores_per_socket


class Queue(Frozen):
    """A queue or partition and the limits that make a job impossible there; None: no limit known."""

    max_walltime_s: PositiveInt | None = None
    min_nodes: PositiveInt = 1
    max_nodes: PositiveInt | None = None
    max_cores_per_node: PositiveInt | None = None
    max_gpus_per_node: Count | None = None
    cores_per_gpu: PositiveInt | None = Field(None, description="cores that must be asked for with each GPU, exactly")
    max_memory_bytes: PositiveInt | None = None
    max_queued_jobs: PositiveInt | None = None
    max_array_size: PositiveInt | None = None
    default_walltime_s: PositiveInt | None = None


class Storage(Frozen):
    """A logical storage. ``path`` is the directory under which data sets lie, one sub-directory each.

    ``path`` may use environment variables of the job (``/scratch/$USER``); they are expanded inside the job.
    ``scope`` node: visible on its own node alone, so data are staged inside the job from ``stage_from``,
    another storage's name.
    """

    path: str
    scope: Literal["shared", "node"] = "shared"
    stage_from: str | None = None
    description: str = ""


class Mpi(Frozen):
    """How ranks are launched."""

    flavour: MpiFlavour = "openmpi5"
    launcher: Literal["mpirun", "srun"] = "mpirun"
    command: str | None = Field(None, description="path of the launcher; None: mpirun or srun from PATH")
    bind: Literal["core", "none"] = Field(
        "core", description="core: socket:PE=n --bind-to core; none: where a cpuset confines the job already"
    )
    options: tuple[str, ...] = Field((), description="further launcher arguments, one word each")
    environment: dict[str, str] = Field(default_factory=dict, description="variables passed to every rank")


class Container(Frozen):
    """A container that wraps the program on every rank (inside mpirun)."""

    runtime: Literal["singularity", "apptainer"]
    image: str
    options: tuple[str, ...] = ()


class Directives(Frozen):
    """How the scheduler's own request is spelt at this site."""

    style: Literal["select", "nodes", "plain", "by_gpu"] = Field(
        "select", description="PBS: select chunks; Torque: nodes; plain: -l ncpus= (Gadi); by_gpu: select=N counts GPUs"
    )
    place: str | None = Field(None, description="PBS -l place=; None: scatter where a job has several nodes")
    select_extra: str = Field("", description="added to each chunk, such as system=polaris")
    filesystems: str | None = Field(None, description="ALCF -l filesystems=home:eagle")
    gpu_type: str | None = Field(None, description="Slurm --gres=gpu:TYPE:n")
    ncpus_per_core: PositiveInt = Field(
        1, description="PBS ncpus, Torque ppn for each core: 2 where the site counts hardware threads and confines jobs"
    )
    exclusive: bool = False
    array_throttle: bool = Field(
        True, description="whether -J 0-9%2 is understood, as by OpenPBS from 22.05.11 on, Torque and Slurm"
    )
    extra: tuple[str, ...] = Field((), description="whole directive lines without their #PBS or #SBATCH")


class Cluster(Frozen):
    """One site. Never part of a point's id."""

    name: str
    description: str = ""
    scheduler: SchedulerName
    nodes: PositiveInt = Field(1, description="nodes at most in one job")
    node: NodeType
    queue: str | None = Field(None, description="queue used unless the command line names another")
    queues: dict[str, Queue] = Field(default_factory=dict)
    account: str | None = None
    project: str | None = None
    storage: dict[str, Storage]
    # all defaults, made without their validators: to build those takes longer than to import this module
    mpi: Mpi = Mpi.model_construct()
    directives: Directives = Directives.model_construct()
    modules: tuple[str, ...] = ()
    conda: str | None = Field(None, description="conda environment, name or path")
    prelude: tuple[str, ...] = Field((), description="shell lines of the site, run before mpirun, as written")
    container: Container | None = None
    python: str = Field("python3", description="interpreter of the ranks")
    body_template: str | None = Field(None, description="site's own Jinja2 job body under jobscripts/, by name")
    default_memory_bytes: PositiveInt | None = Field(None, description="memory per node asked for by default")
    memory_per_core_bytes: PositiveInt | None = None
