"""What one rank does between ``run_start`` and ``run_end``, in this order."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness import catalog, cgroups
from harness.errors import UserError
from harness.layout import AttemptLayout, CampaignLayout
from harness.model.job import RunSpec
from harness.runtime import affinity, feeds, provenance, storage
from harness.runtime.clock import SystemClock
from harness.runtime.devices import own_mig_device, physical_gpu
from harness.runtime.events import EventWriter
from harness.runtime.interfaces import Clock, Engine, Exchange, Judged, Pipeline, Ranks, RunContext, Session, Validated
from harness.runtime.meeting import Meeting
from harness.runtime.run_length import RunLength, joint, last_moment_s
from harness.runtime.samplers import Sampler, devices_to_sample
from harness.runtime.stepclock import Between, StepClock, warmup_steps
from harness.runtime.storage_record import probe_once

#: Steps that a profiler watches where the point asks for a trace.
PROFILED_STEPS = 5
#: The option that asks for the loss over the test samples after every so many steps.
VALIDATION_WINDOW = "validation_window"


@dataclass
class Run:
    """One rank's run; what it has begun is ended by :meth:`close`."""

    spec: RunSpec
    ranks: Ranks
    clock: Clock
    writer: EventWriter
    meeting: Meeting
    directory: Path
    exchange: Exchange | None = None
    cpus: tuple[int, ...] = ()
    launcher_cpus: tuple[int, ...] = ()
    _parts: list[Any] = field(default_factory=list)

    @property
    def threads(self) -> int:
        """Threads of this rank: the point's, else one for each of its cores."""
        return self.spec.axes.parallel_threads or self.spec.placement.cores_per_rank

    def measure(self) -> None:
        """The whole run: CPUs, engine, exchange, data, pipeline, session, steps, checks."""
        self.settle_cpus()
        engine, device = self.prepare_engine()
        exchange = self.exchange = self.start_exchange(device)
        self.note_provenance(engine, exchange, device)
        path = self.find_data()
        context = self.context(exchange, device, path)
        with self.writer.span("build"):
            pipeline, session = self.build(context)
        if "data" not in self.writer.kinds:  # a pipeline that holds the samples knows more about them
            self.writer.note("data", **storage.describe(self.spec, path))
        source, consumer = feeds.fed(self.spec.axes.feed, pipeline, session)
        steps = StepClock(consumer, source, self.clock, self.writer)
        exchange.barrier()
        self.note_io("begin", path)
        remembered: list[int] = []
        self.run_steps(steps, exchange, self.remembering(session, remembered))
        self.note_io("end", path)
        self.profile(engine, steps)
        self.note_quality(session)
        self.note_validation(session, remembered)
        self.note_affinity(engine, pipeline.worker_cpus())
        self.check_ranks(exchange, session)

    def close(self) -> list[Exception]:
        """End what was begun, the last first; returns what went wrong with it."""
        failures = []
        while self._parts:
            try:
                self._parts.pop().close()
            except Exception as error:
                failures.append(error)
        self.meeting.clear()
        return failures

    def settle_cpus(self) -> None:
        """Confine this rank to its share of CPUs, size thread pools, start the node's sampler."""
        requested = self.spec.placement.cores_per_rank
        mask = self.launcher_cpus = tuple(sorted(os.sched_getaffinity(0)))
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        told = self.meeting.tell(
            "cpus", {"pid": os.getpid(), "cpus": mask, "gpus": visible, "gpu": self.own_gpu(visible)}
        )
        masks = [answer and answer["cpus"] for answer in told]
        cores = affinity.cores_of(sorted({cpu for known in masks for cpu in known or ()}))
        shares = affinity.share(masks, requested, cores)
        self.cpus = affinity.confine(shares[self.ranks.local_rank])
        os.environ.update(affinity.thread_environment(self.threads))
        quota = affinity.quota_findings(requested, self.ranks.local_world, cgroups.cpu_quota())
        for found in affinity.findings(requested, mask, shares, self.ranks.local_rank, self.cpus) + quota:
            self.writer.finding(found.code, found.evidence, found.advice)
        self.note_shared_gpu([answer and answer["gpu"] for answer in told])
        if (mig := own_mig_device(self.ranks.local_rank, visible)) is not None:
            os.environ["CUDA_VISIBLE_DEVICES"] = mig  # no framework has been loaded yet
        if self.ranks.local_rank == 0 and isinstance(self.clock, SystemClock):
            self.start_sampler([answer for answer in told if answer])

    def start_sampler(self, told: Sequence[Mapping[str, Any]]) -> None:
        """Sample this node, by what its ranks told of themselves."""
        path = AttemptLayout(self.directory).samples(self.ranks.node)
        gpus = [[answer[name] for answer in told] for name in ("gpus", "gpu")]
        devices = devices_to_sample(self.spec.axes.gpus_per_rank, *gpus)
        self._parts.append(Sampler(path, [answer["pid"] for answer in told], self.writer.origin_s, devices))

    def own_gpu(self, visible: str | None) -> str | None:
        """This rank's GPU, where another rank of its node might have the same."""
        if not self.spec.axes.gpus_per_rank or self.ranks.local_world == 1:
            return None
        return physical_gpu(self.ranks.local_rank, visible, provenance.gpu_uuids())

    def note_shared_gpu(self, gpus: Sequence[str | None]) -> None:
        """A finding where this rank's GPU, of those by local rank, is another's as well."""
        own = gpus[self.ranks.local_rank]
        local_ranks = [rank for rank, gpu in enumerate(gpus) if gpu == own]
        if own is not None and len(local_ranks) > 1:
            evidence = {"gpu": own, "local_ranks": local_ranks}
            advice = (
                f"the job has fewer GPUs on a node than its {len(gpus)} ranks there: look at gpus in the cluster's "
                "file, at the job's directives and at CUDA_VISIBLE_DEVICES, or use fewer ranks_per_node"
            )
            self.writer.finding("gpu_shared_by_ranks", evidence, advice)

    def prepare_engine(self) -> tuple[Engine, str]:
        """Import the framework and make it ready; affinity is on record from here on."""
        framework = self.spec.axes.framework or catalog.NO_FRAMEWORK
        reference = catalog.lookup(catalog.ENGINES, framework, "framework")
        with self.writer.span("import"):
            try:
                engine: Engine = catalog.load(reference)()
            except ModuleNotFoundError as error:
                raise UserError(
                    f"{framework} does not load on {self.ranks.node}: {error}; "
                    f'install it for the ranks: pip install -e ".[{framework}]"'
                ) from None
            device = engine.prepare(self.spec, self.ranks, self.threads)
        self.note_affinity(engine, None)
        return engine, device

    def note_affinity(self, engine: Engine, worker_cpus: list[int] | None) -> None:
        """An ``affinity`` event: one when the engine is ready, one with the loader worker's CPUs after the steps."""
        allowed = sorted(os.sched_getaffinity(0))
        self.writer.note(
            "affinity",
            requested_cores=self.spec.placement.cores_per_rank,
            allowed_cpus=allowed,
            allowed_cores=len(set(affinity.cores_of(allowed).values())),
            worker_allowed_cpus=worker_cpus,
            threads={"requested": self.threads, **engine.thread_pools()},
            launcher_binding=list(self.launcher_cpus),
        )

    def start_exchange(self, device: str) -> Exchange:
        name = self.spec.axes.comm or ("none" if self.ranks.world == 1 else "mpi4py")
        with self.writer.span("exchange"):
            exchange: Exchange = catalog.load(catalog.lookup(catalog.COMMS, name, "comm"))(
                self.spec, self.ranks, device
            )
        return exchange

    def note_provenance(self, engine: Engine, exchange: Exchange, device: str) -> None:
        facts = provenance.record(engine.versions(), exchange.versions())
        self.writer.note("provenance", **facts, device=device, git_commit=self.spec.git_commit)

    def find_data(self) -> Path | None:
        """The data set's directory, with its cache state made and everything about it on record."""
        path = storage.data_path(self.spec, os.environ)
        if staged := storage.stage_facts(self.directory):
            self.writer.note("stage", **staged)
        if path is not None:
            self.probe_storage(path)
            # one rank per node does the work, the page cache is common to all; the others wait for its word
            mine = storage.set_cache(path, self.spec.axes.cache) if self.ranks.local_rank == 0 else None
            state = self.meeting.tell("cache", mine, patience_s=storage.CACHE_PATIENCE_SECONDS)[0]
            if state:
                self.writer.note("cache", **state)
        return path

    def probe_storage(self, path: Path) -> None:
        """How fast the storage reads the data, before the first run of a campaign that uses it."""
        root = AttemptLayout(self.directory).campaign_root
        if self.ranks.rank or root is None:
            return
        name = self.spec.axes.storage
        with self.writer.span("probe"):
            facts = probe_once(path, name, CampaignLayout(root).storage(name))
        if facts:
            self.writer.note("storage", **facts)

    def context(self, exchange: Exchange, device: str, path: Path | None) -> RunContext:
        return RunContext(
            spec=self.spec,
            ranks=self.ranks,
            cpus=self.cpus,
            threads=self.threads,
            exchange=exchange,
            clock=self.clock,
            device=device,
            data_path=path,
            note=self.writer.note,
        )

    def build(self, context: RunContext) -> tuple[Pipeline, Session]:
        """The pipeline and the session that the catalog names for this workload, pipeline and framework."""
        axes = self.spec.axes
        framework = axes.framework or catalog.NO_FRAMEWORK
        workload = catalog.lookup(catalog.WORKLOADS, axes.workload, "workload")
        default = catalog.lookup(workload.pipelines, framework, f"framework of {axes.workload}")
        pipelines = catalog.lookup(catalog.PIPELINES, axes.pipeline or default, "pipeline").frameworks
        pipeline: Pipeline = catalog.load(catalog.lookup(pipelines, framework, "framework"))(context)
        self._parts.append(pipeline)
        session: Session = catalog.load(catalog.lookup(workload.frameworks, framework, "framework"))(context)
        self._parts.append(session)
        facts = session.facts()
        self.writer.note(
            "model", name=facts.name, parameters=facts.parameters, trainable=facts.trainable, **facts.details
        )
        return pipeline, session

    def remembering(self, session: Session, remembered: list[int]) -> Between | None:
        """What keeps the model as it is after each window of steps that the point asks for, on rank 0."""
        window = int(self.spec.axes.options.get(VALIDATION_WINDOW, 0))  # type: ignore[arg-type]
        if window < 1 or self.ranks.rank or not isinstance(session, Validated):
            return None

        def keep(step: int) -> None:
            session.remember()
            remembered.append(step)

        return Between(window, keep)

    def run_steps(self, steps: StepClock, exchange: Exchange, between: Between | None = None) -> None:
        """The warm-up and the timed steps, as many as the point asks for or as its interval takes."""
        axes = self.spec.axes
        wanted = axes.interval_percent / 100 if axes.interval_percent else None
        begin_s = self.writer.now()
        # the claim is older than this clock's zero by what staging took; without a job script there is none
        before_s = max(storage.age_s(AttemptLayout(self.directory).claim) - begin_s, 0.0)
        until_s = last_moment_s(self.spec.placement.walltime_s, before_s)
        length = RunLength(axes.steps_timed, wanted, until_s)

        def agree(verdict: str) -> str:
            alone = wanted is None or self.ranks.world == 1 or exchange.name == "none"
            return verdict if alone else joint(exchange.gather_text(verdict))

        verdict = steps.run_until(warmup_steps(axes), length, axes.batch_interval, agree, between)
        if wanted is not None:
            self.writer.note(
                "length", verdict=verdict, wanted_percent=100 * wanted, reached_percent=100 * length.reached
            )
        if verdict == "late":
            evidence = {"wanted_percent": 100 * wanted if wanted else None, "reached_percent": 100 * length.reached}
            advice = "ask for more walltime, or for a wider interval"
            self.writer.finding("interval_not_reached", evidence, advice)

    def profile(self, engine: Engine, steps: StepClock) -> None:
        """After all that is timed, a profiler's trace of some steps of rank 0; the other ranks take them, too."""
        if not self.spec.axes.profile:
            return
        if self.ranks.rank:
            steps.run_unrecorded(PROFILED_STEPS)
            return
        directory = AttemptLayout(self.directory).profile
        directory.mkdir()
        with self.writer.span("profile"), engine.profile(directory):
            steps.run_unrecorded(PROFILED_STEPS)

    def note_io(self, at: str, path: Path | None) -> None:
        """What this rank and its workers have read and computed; a node's reads from servers its first rank tells."""
        counters = storage.io_counters(storage.process_tree(os.getpid()))
        if path is not None and self.ranks.local_rank == 0:
            counters |= storage.server_counters(path)
        self.writer.note("io", at=at, **counters)

    def note_quality(self, session: Session) -> None:
        if isinstance(session, Judged) and (quality := session.quality()):
            self.writer.note("quality", **quality)

    def note_validation(self, session: Session, remembered: list[int]) -> None:
        """The loss over the samples kept from training, for each window of steps."""
        if not remembered or not isinstance(session, Validated):
            return
        with self.writer.span("validation"):
            for step, (loss, error, samples) in zip(remembered, session.judgements(), strict=True):
                self.writer.note("validation", step=step, loss=loss, error=error, samples=samples)

    def check_ranks(self, exchange: Exchange, session: Session) -> None:
        """Ranks that exchange gradients must end with equal parameters."""
        if self.ranks.world == 1 or exchange.name == "none":
            return
        digests = exchange.gather_text(session.digest())
        same = len(set(digests)) == 1
        self.writer.note("check", name="ranks_identical", ok=same, value=digests[self.ranks.rank])
        if not same:
            advice = "the ranks train different models: gradients are not exchanged; do not trust this run's scaling"
            self.writer.finding("params_diverged", {"digests": digests}, advice)
