"""Columns of the derived tables: name, unit, meaning, direction, and which must agree before runs are merged.

The data dictionary ``results/data_dictionary.md`` is generated from here (``harness collect --dictionary``).
Options of workloads and pipelines, which the catalog knows, are columns too: see ``harness/analysis/dictionary.py``.
"""

from __future__ import annotations

from harness.model.axes import Axes
from harness.model.column import Column, Kind


def _axis_kind(name: str) -> Kind:
    annotation = str(Axes.model_fields[name].annotation)
    for word, kind in (("bool", "bool"), ("int", "int"), ("float", "float")):
        if word in annotation:
            return kind  # type: ignore[return-value]
    return "text"


def _axis_columns() -> tuple[Column, ...]:
    units = {"steps_warmup": "steps", "steps_timed": "steps", "shuffle_buffer": "samples", "prefetch": "batches"}
    units |= {"max_queue_size": "batches", "batch_size": "images", "batch_interval": "steps"}
    return tuple(
        Column(name, _axis_kind(name), units.get(name, ""), "axis: " + (field.description or name.replace("_", " ")))
        for name, field in Axes.model_fields.items()
        if name != "options"
    )


_IDENTITY = (
    Column("campaign", "text", "", "name of the campaign the run belongs to"),
    Column("point_id", "text", "", "what was measured: 16 hex digits over the axes that differ from their default"),
    Column("repeat", "int", "", "repeat of the point, from 0"),
    Column("attempt", "int", "", "try at this repeat, from 1"),
    Column("latest", "bool", "", "no later attempt at the same repeat exists"),
    Column("counts", "bool", "", "stands for its repeat: the newest success, else the newest; no pack's extra canary"),
    Column("state", "text", "", "SUCCEEDED, FAILED, TIMED_OUT, CANCELLED, LOST, RUNNING, QUEUED or INTENDED"),
    Column("reason", "text", "", "why the run is in this state, where it is not SUCCEEDED"),
)

_PLACE = (
    Column("cluster", "text", "", "cluster that the point was placed on", must_match=True),
    Column("queue", "text", "", "queue or partition"),
    Column("ranks", "int", "", "MPI ranks of the whole job"),
    Column("cores_requested", "int", "", "CPU cores asked for, over all nodes"),
    Column("gpus_requested", "int", "", "GPUs asked for, over all nodes"),
    Column("walltime_s", "int", "s", "walltime asked for"),
    Column("node", "text", "", "nodes that ran it, comma-separated"),
    Column("cpu_model", "text", "", "CPU model of the first rank's node", must_match=True),
    Column("gpu_model", "text", "", "GPU model of the first rank's node", must_match=True),
    Column("gpu_driver", "text", "", "GPU driver of the first rank's node", must_match=True),
    Column("os", "text", "", "operating system and kernel of the first rank's node"),
    Column("job_id", "text", "", "the scheduler's id of the job"),
    Column("started_unix_s", "float", "s", "begin of the job script, seconds since 1970"),
    Column("job_s", "float", "s", "time from the begin of the job script to its end", higher_is_better=False),
)

_PROVENANCE = (
    Column("harness_version", "text", "", "version of this program that planned the run"),
    Column("git_commit", "text", "", "git commit of this program, where known"),
    Column("python_version", "text", "", "Python of the ranks"),
    Column("framework_version", "text", "", "version of TensorFlow or torch", must_match=True),
    Column("mpi_version", "text", "", "MPI library, where known", must_match=True),
    Column("versions", "text", "", "versions of all libraries that matter, JSON"),
    Column("device", "text", "", "device trained on", must_match=True),
    Column("launcher_binding", "text", "", "what the launcher had bound rank 0 to"),
    Column("threads", "text", "", "thread pools of rank 0, JSON"),
    Column("cores_allowed_min", "int", "", "CPUs that the most confined rank was allowed to use"),
    Column("cores_achieved", "bool", "", "every rank was allowed exactly its requested cores"),
    Column("dataset_origin", "text", "", "real, digits, photos, synthetic or none", must_match=True),
    Column("dataset_digest", "text", "", "digest of the data set's files", must_match=True),
    Column("dataset_samples", "int", "", "training samples of the data set"),
    Column("dataset_verified", "bool", "", "checksums of the data set agree with the published ones"),
    Column("cache_state", "text", "", "page-cache state before the run: cold, warm or unknown", must_match=True),
    Column("parameters", "int", "", "parameters of the model, as its framework counts them", must_match=True),
)

_MEASURED = (
    Column("images_per_s", "float", "1/s", "fresh images / elapsed time over the steady window, all ranks", True),
    Column("images_per_s_low", "float", "1/s", "lower end of its 95 % interval within this run (block bootstrap)"),
    Column("images_per_s_high", "float", "1/s", "upper end of its 95 % interval within this run"),
    Column("consumed_per_s", "float", "1/s", "images that entered training steps / elapsed time, steady window", True),
    Column("time_s", "float", "s", "training time: elapsed over the last `steps_timed` steps, slowest rank", False),
    Column("steady", "bool", "", "the run reached a steady state: step time and buffer stopped trending"),
    Column("steps_done", "int", "steps", "steps that every rank finished"),
    Column("steps_left_out", "int", "steps", "steps before the steady window: warm-up, transient, buffer drain"),
    Column("steps_steady", "int", "steps", "steps in the steady window"),
    Column("transient_images_per_s", "float", "1/s", "fresh images / elapsed time between warm-up and steady window"),
    Column("all_images_per_s", "float", "1/s", "fresh images / elapsed time over all steps after the first"),
    Column(
        "mean_of_step_rates",
        "float",
        "1/s",
        "arithmetic mean of per-step rates after the first step, as often published; overstated while a buffer drains",
    ),
    Column("step_mean_s", "float", "s", "mean step time in the steady window, slowest rank", False),
    Column("step_p50_s", "float", "s", "median step time in the steady window", False),
    Column("step_p95_s", "float", "s", "95th percentile of the step time in the steady window", False),
    Column("step_max_s", "float", "s", "longest step in the steady window", False),
    Column("first_step_s", "float", "s", "first step, with compilation and autotuning", False),
    Column("wait_share", "float", "", "share of the steady window that ranks waited for a batch", False),
    Column("copy_share", "float", "", "share of the steady window spent copying to the device", False),
    Column("compute_share", "float", "", "share of the steady window spent computing"),
    Column("exchange_share", "float", "", "share of the steady window spent exchanging gradients", False),
    Column(
        "au_percent",
        "float",
        "%",
        "accelerator utilisation as in MLPerf Storage: time computing and exchanging / elapsed time, steady window",
        True,
    ),
    Column("rank_imbalance", "float", "", "slowest rank's own work per step / mean over ranks, less 1", False),
    Column("occupancy_peak", "float", "batches", "most batches ready before the steady window, mean over ranks"),
    Column("occupancy_steady", "float", "batches", "mean of batches ready in the steady window"),
    Column("drained_images", "float", "images", "images the buffer lost between its peak and the steady window"),
    Column("import_s", "float", "s", "time rank 0 needed to import its framework", False),
    Column("build_s", "float", "s", "time rank 0 needed to build model and pipeline", False),
    Column("stage_s", "float", "s", "time spent staging data inside the job", False),
    Column("stage_bytes", "int", "B", "bytes staged"),
    Column("read_bytes", "int", "B", "bytes really read from storage between begin and end, all ranks"),
    Column(
        "server_read_bytes", "int", "B", "bytes that the nodes read from the NFS or Lustre server, by all their jobs"
    ),
    Column("loss_first", "float", "", "first loss recorded by rank 0"),
    Column("loss_last", "float", "", "last loss recorded by rank 0", False),
    Column("validation_loss", "float", "", "cross-entropy over the test samples after the last window of steps", False),
    Column("validation_error", "float", "", "share of the test samples answered wrongly after that window", False),
    Column("auroc", "float", "", "area under the ROC, mean over classes, of training samples in the last steps", True),
    Column("ranks_identical", "bool", "", "parameters were equal over all ranks at the end"),
    Column("rss_max_bytes", "int", "B", "largest memory of a node's ranks and workers", False),
    Column("cpu_percent_mean", "float", "%", "mean utilisation of the CPUs that the ranks may use"),
    Column("cores_used", "float", "", "CPU seconds used by ranks and workers / elapsed time, all steps, all ranks"),
    Column("cpu_power_w", "float", "W", "mean power of all CPU packages together, where RAPL tells"),
    Column("disk_read_per_s", "float", "B/s", "bytes a second read from the nodes' own disks, by whatever runs there"),
    Column("net_recv_per_s", "float", "B/s", "bytes a second received over the nodes' networks"),
    Column("gpu_util_percent", "float", "%", "mean GPU utilisation"),
    Column("gpu_idle_share", "float", "", "share of the time in which no kernel ran on the GPUs", False),
    Column("gpu_memory_max_bytes", "int", "B", "most memory in use on one of the GPUs in the steady window", False),
    Column("gpu_power_w", "float", "W", "mean power of all GPUs together"),
    Column("images_per_joule", "float", "1/J", "images per joule of GPU energy", True),
    Column("findings", "text", "", "what makes this number doubtful: JSON list of {code, severity, evidence, advice}"),
)

AXIS_COLUMNS = _axis_columns()


def run_columns(options: tuple[Column, ...] = ()) -> tuple[Column, ...]:
    """The columns of the table of runs, in order; ``options`` are those of workloads and pipelines."""
    return (*_IDENTITY, *AXIS_COLUMNS, *options, *_PLACE, *_PROVENANCE, *_MEASURED)


STEP_TABLE_COLUMNS: tuple[Column, ...] = (
    Column("point_id", "text", "", "what was measured"),
    Column("repeat", "int", "", "repeat of the point"),
    Column("attempt", "int", "", "try at this repeat"),
    Column("rank", "int", "", "MPI rank"),
    Column("step", "int", "", "number of the step, as the rank recorded it"),
    Column("part", "text", "", "warmup, transient or steady"),
    Column("begin_s", "float", "s", "begin of the step on the rank's clock"),
    Column("end_s", "float", "s", "end of the step on the rank's clock"),
    Column("wait_s", "float", "s", "waiting for the batch"),
    Column("copy_s", "float", "s", "copying the batch to the device"),
    Column("compute_s", "float", "s", "computing"),
    Column("exchange_s", "float", "s", "exchanging gradients"),
    Column("fresh", "int", "images", "fresh images delivered for this step"),
    Column("consumed", "int", "images", "images that entered this step"),
    Column("occupancy", "float", "batches", "batches ready when the step asked; empty where no buffer can be read"),
)

MUST_MATCH: tuple[str, ...] = tuple(column.name for column in run_columns() if column.must_match)
