"""Events of a run: one JSON object a line in ``events.r<rank>.jsonl``; the compute side's evidence.

Every record has ``event`` (its kind) and ``t_s`` (seconds on the rank's monotonic clock, zero at ``run_start``).
The last member of a line, ``crc``, seals it (:func:`harness.files.sealed_line`); a broken seal means damage.
Kinds and their further fields:

``run_start``   schema, rank, world, local_rank, local_world, node, pid, unix_s, point_id, repeat, attempt,
                steps_warmup, steps_timed (steps to do before and in the timed window)
``provenance``  versions {name: version}, host {…}, env {…}, device, git_commit, command [word],
                must_match [field]
``affinity``    requested_cores (per rank), allowed_cpus [int] (this rank), allowed_cores (those CPUs belong to so
                many), worker_allowed_cpus [int] | null (one loader worker), threads {pool: n}, launcher_binding [int]
                (what the launcher had bound before us); written when the engine is ready and again, with the worker's
                CPUs, after the steps: the last one counts
``data``        dataset, origin (real | digits | photos | synthetic | none), path, samples, bytes, digest, verified
``storage``     storage (logical name), node, unix_s, path and the parts of
                :func:`harness.runtime.storage_probe.probe_existing`; before a campaign's first run on that storage
``cache``       wanted, state (cold | warm | unknown), resident_share, bytes
``stage``       from_path, to_path, seconds, bytes, files, verified (every file was compared)
``model``       parameters, trainable, name, further counts
``phase``       name (import, build, …), begin_s, end_s
``steps``       columns of equal length: step [int] and the columns of :data:`STEP_COLUMNS`
``loss``        step, value
``quality``     of (what was judged), samples, auroc (mean over the classes where it is defined) | null, auroc_by_class
                [float | null]; computed after the steps
``validation``  step (steps done), loss (mean cross-entropy over the test samples), error (share of wrong answers),
                samples; one for each window, computed after all steps from copies of the parameters
``finding``     code, evidence {…}, advice
``check``       name (such as ranks_identical), ok, value
``io``          read_bytes (storage), rchar_bytes (all read calls), cpu_s (CPU seconds used), of the rank and its
                workers, at: begin | end; on a node's first rank also nfs_read_bytes or lustre_read_bytes where the
                data lie there (by the whole node, since mounted)
``length``      verdict (enough | late), wanted_percent, reached_percent; where the point asks for an interval
``error``       type, message, traceback
``run_end``     ok, steps, fresh_images, consumed_images

Samples of utilisation lie in ``samples.<node>.jsonl``, one record a second by one process per node:
``t_s``, ``unix_s``, ``cpu_percent`` [per CPU], ``rss_bytes`` (process tree of the ranks here), ``gpu`` [{util_percent,
memory_bytes, power_w, energy_j (since the driver was loaded)}], ``disk_read_bytes``, ``net_recv_bytes`` (of disks and
cards, not of volumes and bonds over them) and, where RAPL is readable, ``cpu_energy_j`` (counters since sampling
began).
"""

from __future__ import annotations

EVENT_SCHEMA = 1

#: Columns of a ``steps`` event. Times are seconds; ``begin_s`` and ``end_s`` are on the rank's clock; wait (for the
#: batch), copy (to the device), compute and exchange (gradients) are parts of the step; fresh and consumed count
#: images; occupancy is the number of batches ready in the pipeline's buffer when the step asked, or null.
STEP_COLUMNS = ("begin_s", "end_s", "wait_s", "copy_s", "compute_s", "exchange_s", "fresh", "consumed", "occupancy")
