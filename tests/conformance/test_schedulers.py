"""One suite over every scheduler: exact sets of directives, submit and status answers, hostile paths.

A new scheduler joins by a line in the catalog, its rows in the tables here, and nothing else.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
from jobs_support import JOB_NAME, make_cluster, make_placement

from harness import catalog
from harness.errors import UserError
from harness.jobs.schedulers.interface import Answer, ArrayRange, Scheduler
from harness.model.cluster import Directives

LOG = "/home/u/r0a1/scheduler.log"
NAMES = sorted(catalog.SCHEDULERS)
SMALL = make_placement()
LARGE = make_placement(
    nodes=2,
    ranks_per_node=4,
    cores_per_node=40,
    gpus_per_node=4,
    memory_bytes=80 * 1024**3 + 1,
    walltime_s=100 * 3600 + 59,
    queue="volta_gpu",
    account="acc-1",
    project="proj_2",
)


def scheduler(name: str) -> Scheduler:
    return catalog.load(catalog.SCHEDULERS[name])  # type: ignore[no-any-return]


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


PBS_HEAD = {f"-N {JOB_NAME}", "-S /bin/bash", "-j oe", f"-o {LOG}", "-m n", "-r n"}
SLURM_HEAD = {f"--job-name={JOB_NAME}", f"--output={LOG}", "--open-mode=append", "--no-requeue"}
LOCAL_HEAD = {f'name="{JOB_NAME}"', f'output="{LOG}"'}

EXPECTED: dict[str, dict[str, set[str]]] = {
    "local": {
        "small": LOCAL_HEAD | {"cores=10", "walltime_s=5400", "exclusive=false"},
        "large": LOCAL_HEAD | {"cores=40", "walltime_s=360059", "memory_bytes=85899345921", "exclusive=false"},
    },
    "pbs": {
        "small": PBS_HEAD | {"-l select=1:ncpus=10:mpiprocs=1", "-l walltime=01:30:00"},
        "large": PBS_HEAD
        | {"-q volta_gpu", "-A acc-1", "-P proj_2", "-l walltime=100:00:59"}
        | {"-l select=2:ncpus=40:mpiprocs=4:ngpus=4:mem=81921mb", "-l place=scatter"},
    },
    "slurm": {
        "small": SLURM_HEAD
        | {"--nodes=1", "--ntasks-per-node=1", "--cpus-per-task=10", "--time=01:30:00"}
        | {"--threads-per-core=1"},
        "large": SLURM_HEAD
        | {"--partition=volta_gpu", "--account=acc-1", "--nodes=2", "--ntasks-per-node=4", "--cpus-per-task=10"}
        | {"--threads-per-core=1"}
        | {"--gres=gpu:4", "--mem=81921M", "--time=100:00:59"},
    },
    "torque": {
        "small": PBS_HEAD | {"-l nodes=1:ppn=10", "-l walltime=01:30:00"},
        "large": PBS_HEAD
        | {"-q volta_gpu", "-A acc-1", "-l nodes=2:ppn=40:gpus=4", "-l mem=163842mb", "-l walltime=100:00:59"},
    },
}


@pytest.mark.parametrize("size", ["small", "large"])
def test_directives_are_exactly_these(name: str, size: str) -> None:
    placement = {"small": SMALL, "large": LARGE}[size]
    lines = scheduler(name).directives(make_cluster(name), placement, JOB_NAME, LOG)
    assert set(lines) == EXPECTED[name][size]
    assert len(lines) == len(set(lines))


def added(name: str, directives: Directives, placement: Any = SMALL) -> tuple[set[str], set[str]]:
    """What a site's own settings add to and take from the directives."""
    plain = set(scheduler(name).directives(make_cluster(name), placement, JOB_NAME, LOG))
    own = set(scheduler(name).directives(make_cluster(name, directives=directives), placement, JOB_NAME, LOG))
    return own - plain, plain - own


@pytest.mark.parametrize(
    ("name", "style", "asked"),
    [
        ("pbs", "select", "-l select=1:ncpus=20:mpiprocs=1"),
        ("pbs", "plain", "-l ncpus=20"),
        ("torque", "nodes", "-l nodes=1:ppn=20"),
    ],
)
def test_where_pbs_counts_hardware_threads_it_is_asked_for_those_of_each_core(
    name: str, style: Any, asked: str
) -> None:
    new, _ = added(name, Directives(style=style, ncpus_per_core=2))
    assert new == {asked}


def test_polaris() -> None:
    site = Directives(place="scatter", select_extra="system=polaris", filesystems="home:eagle", extra=("-k doe",))
    assert added("pbs", site) == (
        {"-l select=1:ncpus=10:mpiprocs=1:system=polaris", "-l place=scatter", "-l filesystems=home:eagle", "-k doe"},
        {"-l select=1:ncpus=10:mpiprocs=1"},
    )


def test_gadi_asks_for_sums_without_select() -> None:
    site = Directives(style="plain", extra=("-l storage=gdata/ab1+scratch/ab1", "-l wd"))
    new, gone = added("pbs", site, LARGE)
    assert new == {"-l ncpus=80", "-l ngpus=8", "-l mem=163842mb", "-l storage=gdata/ab1+scratch/ab1", "-l wd"}
    assert gone == {"-l select=2:ncpus=40:mpiprocs=4:ngpus=4:mem=81921mb", "-l place=scatter"}


def test_sophia_counts_gpus() -> None:
    assert added("pbs", Directives(style="by_gpu"), LARGE)[0] == {"-l select=8"}
    with pytest.raises(UserError, match="asked for by GPUs"):
        added("pbs", Directives(style="by_gpu"), SMALL)


def test_a_style_of_torque_is_refused_by_pbs() -> None:
    with pytest.raises(UserError, match="'nodes' is Torque's"):
        added("pbs", Directives(style="nodes"))


def test_whole_nodes() -> None:
    site = Directives(exclusive=True)
    assert added("pbs", site)[0] == {"-l place=scatter:excl"}
    assert added("pbs", Directives(exclusive=True, place="pack:excl"))[0] == {"-l place=pack:excl"}
    assert added("torque", site)[0] == {"-n"}
    assert added("slurm", site)[0] == {"--exclusive"}
    assert added("local", site)[0] == {"exclusive=true"}


@pytest.mark.parametrize(
    ("site", "placement", "expected"),
    [
        (Directives(), SMALL, None),
        (Directives(), LARGE, "scatter"),
        (Directives(place="free"), LARGE, "free"),
        (Directives(exclusive=True), LARGE, "scatter:excl"),
        (Directives(exclusive=True, place="scatter"), SMALL, "scatter:excl"),
        (Directives(exclusive=True, place="scatter:group=switch"), LARGE, "scatter:excl:group=switch"),
        (Directives(exclusive=True, place="scatter:exclhost"), LARGE, "scatter:exclhost"),
        (Directives(style="by_gpu"), LARGE, None),
        (Directives(style="by_gpu", exclusive=True), make_placement(gpus_per_node=2), "pack:excl"),
        (Directives(style="by_gpu", exclusive=True), LARGE, "free:excl"),
    ],
)
def test_where_chunks_lie_in_pbs(site: Directives, placement: Any, expected: str | None) -> None:
    """Several chunks on one node would be several nodes' shares on one, and the launcher would lack slots."""
    lines = scheduler("pbs").directives(make_cluster("pbs", directives=site), placement, JOB_NAME, LOG)
    assert [line for line in lines if "place=" in line] == ([f"-l place={expected}"] if expected else [])


def test_whole_nodes_cannot_be_asked_for_in_sums() -> None:
    with pytest.raises(UserError, match="exclusive cannot be said in style plain"):
        added("pbs", Directives(style="plain", exclusive=True))


@pytest.mark.parametrize("line", ["--hint=multithread", "--threads-per-core=2", "-B 2:8:2"])
def test_a_site_may_count_hardware_threads_itself(line: str) -> None:
    gained, lost = added("slurm", Directives(extra=(line,)))
    assert (gained, lost) == ({line}, {"--threads-per-core=1"})


def test_kind_of_gpu() -> None:
    assert added("slurm", Directives(gpu_type="v100"), LARGE)[0] == {"--gres=gpu:v100:4"}


def test_torque_charges_a_project_without_an_account() -> None:
    placement = make_placement(project="proj")
    assert "-A proj" in scheduler("torque").directives(make_cluster("torque"), placement, JOB_NAME, LOG)


@pytest.mark.parametrize(
    ("field", "value"),
    [("queue", "a b"), ("account", "x\n#PBS -l walltime=99:00:00"), ("account", "a,b"), ("queue", "é")],
)
@pytest.mark.parametrize("name", ["pbs", "slurm", "torque"])
def test_words_that_would_change_the_request_are_refused(name: str, field: str, value: str) -> None:
    placement = make_placement(**{field: value})
    with pytest.raises(UserError, match="cannot stand in a job script's directives"):
        scheduler(name).directives(make_cluster(name), placement, JOB_NAME, LOG)


@pytest.mark.parametrize("line", ["", "  ", "-k doe\nrm -rf x", "-k\tdoe"])
@pytest.mark.parametrize("name", ["pbs", "slurm", "torque"])
def test_a_sites_own_line_is_one_line(name: str, line: str) -> None:
    with pytest.raises(UserError, match="is not one line"):
        added(name, Directives(extra=(line,)))


def test_a_list_of_file_systems_with_a_comma_is_refused_with_the_right_spelling() -> None:
    with pytest.raises(UserError, match="home:eagle"):
        added("pbs", Directives(filesystems="home,eagle"))


HOSTILE = [
    "/a b",
    "/a\\b",
    "/a'b",
    '/a"b',
    "/a$(touch x)",
    "/a\nb",
    "/é",
    "/a:b",
    "/a,b",
    "/a%j",
    "/a^array_index^",
    "relative",
]


@pytest.mark.parametrize("folder", HOSTILE)
def test_a_log_path_that_a_directive_could_misread_is_not_used(name: str, folder: str) -> None:
    lines = scheduler(name).directives(make_cluster(name), SMALL, JOB_NAME, f"{folder}/log")
    assert all("\n" not in line for line in lines)
    if name == "local":  # its directives are JSON
        assert f"output={json.dumps(f'{folder}/log')}" in lines
    elif name == "slurm" and folder not in ("/a\nb", "/a\\b", "relative"):
        assert shlex.split(lines[1]) == [f"--output={folder.replace('%', '%%')}/log"]
    else:
        assert lines[3 if name != "slurm" else 1] in ("-o /dev/null", "--output=/dev/null")


@pytest.mark.parametrize("folder", HOSTILE)
def test_the_scripts_path_is_one_argument(name: str, folder: str) -> None:
    argv = scheduler(name).submit_argv(f"{folder}/job.sh", JOB_NAME)
    assert argv[-1] == f"{folder}/job.sh"
    assert sum(JOB_NAME in word for word in argv) == 1
    assert shlex.split(shlex.join(argv)) == argv


ARRAYS = {"pbs": ({"-J 0-9%3", "-r y"}, {"-r n"}), "torque": ({"-t 0-9%3"}, set()), "slurm": ({"--array=0-9%3"}, set())}


@pytest.mark.parametrize("name", sorted(ARRAYS))
def test_arrays(name: str) -> None:
    module, cluster = scheduler(name), make_cluster(name)
    plain = set(module.directives(cluster, SMALL, JOB_NAME, LOG))
    array = set(module.directives(cluster, SMALL, JOB_NAME, LOG, ArrayRange(10, 3)))
    assert (array - plain, plain - array) == ARRAYS[name]
    assert module.ARRAY_INDEX_VARIABLE


def test_no_array_of_one_in_pbs() -> None:
    with pytest.raises(UserError, match="at least two jobs"):
        scheduler("pbs").directives(make_cluster("pbs"), SMALL, JOB_NAME, LOG, ArrayRange(1))


def test_no_array_on_this_machine() -> None:
    with pytest.raises(UserError, match="no job arrays"):
        scheduler("local").directives(make_cluster("local"), SMALL, JOB_NAME, LOG, ArrayRange(2))


BATCH_FAILED = "sbatch: error: Batch job submission failed: "
NO_CONTROLLER = "Unable to contact slurm controller (connect failure)"
ACCOUNTING_POLICY = "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"
TORQUE_FULL = "qsub: submit error (Maximum number of jobs already in queue{} MSG=queue limit: user u@h, queue batch)"


def limit(name: str) -> str:
    """What sbatch says of a limit: its name, then one line for all of them."""
    return f"sbatch: error: {name}\n{BATCH_FAILED}{ACCOUNTING_POLICY}"


SUBMISSIONS = [
    ("pbs", Answer(0, "12.pbs-srv.site\n", ""), "accepted 12.pbs-srv.site"),
    ("pbs", Answer(0, "Welcome to the cluster\n12[].pbs\n", "note: low on quota"), "accepted 12[].pbs"),
    ("pbs", Answer(0, "", ""), "unknown"),
    ("pbs", Answer(None, "", ""), "unknown"),
    ("pbs", Answer(-9, "", ""), "unknown"),
    ("pbs", Answer(255, "", "qsub: End of File"), "unknown"),
    ("pbs", Answer(15031 & 255, "", "qsub: Protocol error"), "unknown"),
    ("pbs", Answer(162, "", "qsub: cannot connect to server s (errno=15010)"), "refused retry"),
    ("pbs", Answer(188, "", "qsub: Job violates queue and/or server resource limits"), "refused"),
    ("pbs", Answer(38, "", "qsub: would exceed queue generic's per-user limit"), "refused retry own"),
    ("pbs", Answer(127, "", "qsub: No such file or directory"), "refused"),
    ("torque", Answer(0, "77.torque.site.edu\n", ""), "accepted 77.torque.site.edu"),
    ("torque", Answer(0, "77[].torque\n", ""), "accepted 77[].torque"),
    ("torque", Answer(170, "", "qsub: submit error (Unknown queue MSG=cannot locate queue)"), "refused"),
    ("pbs", Answer(0, "77\n", ""), "accepted 77"),
    ("torque", Answer(0, "Project ab12: 1000\n77\n", ""), "accepted 77"),
    ("torque", Answer(0, "77[]\n", ""), "accepted 77[]"),
    ("torque", Answer(1, "77\n", "qsub: submit error"), "refused"),
    ("torque", Answer(15048 & 255, "", TORQUE_FULL.format("")), "refused retry"),
    ("torque", Answer(15076 & 255, "", TORQUE_FULL.format(" for user")), "refused retry own"),
    ("torque", Answer(1, "", TORQUE_FULL.format(" for user")), "refused retry own"),
    ("torque", Answer(1, "", "qsub: submit error (Pbs Server is currently too busy)"), "refused retry"),
    ("torque", Answer(15021 & 255, "", "qsub: submit error (Invalid credential)"), "refused"),
    ("torque", Answer(15033 & 255, "", "qsub: submit error (Batch protocol error)"), "unknown"),
    ("torque", Answer(15012 & 255, "", "qsub: submit error ( System error: )"), "unknown"),
    ("torque", Answer(15031 & 255, "", "qsub: submit error (No support for requested service)"), "refused"),
    ("pbs", Answer(15046 & 255, "", "qsub: Maximum number of jobs already in queue"), "refused retry"),
    ("slurm", Answer(0, "123\n", ""), "accepted 123"),
    ("slurm", Answer(0, "123;cluster1\n", "sbatch: lua: be nice"), "accepted 123"),
    ("slurm", Answer(0, "", ""), "unknown"),
    ("slurm", Answer(None, "", ""), "unknown"),
    ("slurm", Answer(1, "", BATCH_FAILED + "Socket timed out on send/recv operation"), "unknown"),
    ("slurm", Answer(1, "", BATCH_FAILED + NO_CONTROLLER), "refused retry"),
    ("slurm", Answer(1, "", BATCH_FAILED + "Invalid partition name specified"), "refused"),
    ("slurm", Answer(1, "", limit("AssocMaxSubmitJobLimit")), "refused retry own"),
    ("slurm", Answer(1, "", limit("QOSMaxSubmitJobPerUserLimit")), "refused retry own"),
    ("slurm", Answer(1, "", limit("MaxSubmitJobsPerAccount")), "refused retry"),
    ("slurm", Answer(1, "", limit("QOSGrpSubmitJobsLimit")), "refused retry"),
    ("slurm", Answer(1, "", limit("QOSMaxWallDurationPerJobLimit")), "refused"),
    ("slurm", Answer(1, "", limit("AssocMaxGRESPerJob")), "refused"),
    ("slurm", Answer(1, "", limit("QOSMinGRES")), "refused"),
    ("slurm", Answer(1, "", BATCH_FAILED + ACCOUNTING_POLICY), "refused retry"),
    ("slurm", Answer(1, "", BATCH_FAILED + "Slurm temporarily unable to accept job"), "refused retry"),
    ("local", Answer(0, "local-7\n", ""), "accepted local-7"),
    ("local", Answer(1, "", "Traceback"), "unknown"),
    ("local", Answer(3, "", "more cores than there are"), "refused"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "answer", "expected"), SUBMISSIONS)
def test_submission(name: str, answer: Answer, expected: str) -> None:
    got = scheduler(name).parse_submit(answer)
    words = [got.outcome, got.job_id, "retry" if got.retryable else "", "own" if got.by_count else ""]
    assert " ".join(filter(None, words)) == expected
    assert got.outcome == "accepted" or got.message


SITES = {"PATH": "/bin", "USER": "me", "SLURM_CONF": "/s.conf", "SLURM_MPI_TYPE": "pmix", "SBATCH_EXPORT": "NONE"}
ASKS_OTHERWISE = (
    *("SQUEUE_PARTITION", "SQUEUE_USERS", "SQUEUE_FORMAT", "SACCT_FORMAT", "SCANCEL_INTERACTIVE", "SBATCH_WAIT"),
    *("SBATCH_TIMELIMIT", "SBATCH_MEM_PER_NODE", "SBATCH_ARRAY_INX", "SBATCH_EXCLUSIVE", "SBATCH_OUTPUT"),
)
#: left by a surrounding job, with what srun makes of the two of them: "mutually exclusive"
SURROUNDING = ("SLURM_JOB_ID", "SLURM_MEM_PER_CPU", "SLURM_NTASKS", "SLURMD_NODENAME", "PMIX_RANK", "PMI_FD")


def test_a_users_variables_change_nothing_of_what_is_asked() -> None:
    given = SITES | dict.fromkeys((*ASKS_OTHERWISE, *SURROUNDING, "PMIX_MCA_gds"), "1")
    assert scheduler("slurm").variables(given, make_cluster("slurm")) == SITES | {"PMIX_MCA_gds": "1"}
    outside = SITES | {"SLURM_CPU_BIND": "none"}
    assert scheduler("slurm").variables(outside, make_cluster("slurm")) == outside
    for name in ("pbs", "torque"):
        assert scheduler(name).variables({**SITES, "PBS_DPREFIX": "#X"}, make_cluster("slurm")) == SITES
    assert scheduler("local").variables(given, make_cluster("slurm")) == given


def test_who_pays_and_where_is_the_users_own_unless_the_clusters_file_says_it() -> None:
    wishes = {"SBATCH_ACCOUNT": "mine", "SBATCH_QOS": "high", "SBATCH_PARTITION": "gpu", "SBATCH_CONSTRAINT": "amd"}
    silent = make_cluster("slurm").model_copy(update={"queue": None, "queues": {}, "account": None, "project": None})
    assert scheduler("slurm").variables(wishes, silent) == wishes
    extra = Directives(extra=("--qos=low", "-C intel"))
    said = silent.model_copy(update={"queue": "cpu", "account": "acc-1", "directives": extra})
    assert scheduler("slurm").variables(wishes, said) == {}


def test_a_job_can_be_asked_for_found_and_cancelled(name: str) -> None:
    module = scheduler(name)
    assert module.status_argv([]) == []
    assert module.cancel_argv([]) == []
    ids = [f"{number}.srv" for number in range(1000)]
    for argv_list in (module.status_argv(ids), module.cancel_argv(ids)):
        asked = [
            job_id
            for job_id in ids
            if any(job_id in word.split("=")[-1].split(",") for argv in argv_list for word in argv)
        ]
        assert asked == ids
        assert all(len(" ".join(argv)) < 100_000 for argv in argv_list)
    assert module.find_argv("me $(touch x)")


def lines(*rows: str) -> str:
    return "".join(row + "\n" for row in rows)


def pbs_text(job_id: str, **attributes: str) -> str:
    return lines(f"Job Id: {job_id}", *(f"    {key} = {value}" for key, value in attributes.items()), "")


def squeue(job_id: str, state: str, code: str = "0", reason: str = "None", name: str = JOB_NAME) -> str:
    return f"{job_id:<64}{state:<24}{code:<16}{reason:<64}{name:<64}\n"


OK = Answer(0, "", "")
NO_DATABASE = Answer(1, "", "Slurm accounting storage is disabled\n")
NO_DATABASE_NOW = Answer(1, "", "sacct: error: Problem talking to the database: Connection refused\n")
NO_JOB = Answer(1, "", "slurm_load_jobs error: Invalid job id specified\n")
UNBEGUN = "CANCELLED CANCELLED 0 unbegun"
NO_HISTORY = Answer(0, "", "qstat: PBS is not configured to maintain job history 7.srv")
UNKNOWN_7 = Answer(153, "", "qstat: Unknown Job Id 7.srv")
FINISHED_7 = Answer(35, "", "qstat: 7.srv Job has finished, use -x or -H")
NO_SERVER = Answer(255, '{"pbs_server": "s"}', "qstat: cannot connect to server s (errno=15008)")
RUNNING_7 = pbs_text("7.srv", job_state="R")
ENDED_7 = pbs_text("7.srv", job_state="F", Exit_status="0")
OVER_TIME_7 = pbs_text(
    "7.srv",
    job_state="C",
    exit_status="271",
    **{"resources_used.walltime": "01:00:02", "Resource_List.walltime": "01:00:00"},
)
ODD_7 = pbs_text("7.srv", Variable_List="A=1,\nJob Id: oops", job_state="F", Exit_status="0")
STATES = [
    ("torque", "7.srv", [pbs_text("7.srv", job_state="Q")], "QUEUED Q"),
    ("torque", "7.srv", [pbs_text("7.srv", job_state="R")], "RUNNING R"),
    ("torque", "7.srv", [pbs_text("7.srv", job_state="C", exit_status="0")], "SUCCEEDED C 0"),
    ("torque", "7.srv", [pbs_text("7.srv", job_state="C", exit_status="3")], "FAILED C 3"),
    ("torque", "7.srv", [pbs_text("7.srv", job_state="C", exit_status="-11")], "TIMED_OUT C -11"),
    ("torque", "7.srv", [pbs_text("7.srv", job_state="C", exit_status="271")], "CANCELLED C 271"),
    (
        "torque",
        "7.srv",
        [OVER_TIME_7],
        "TIMED_OUT C 271",
    ),
    ("torque", "7.srv", [pbs_text("7.srv", job_state="C")], "CANCELLED C"),
    ("torque", "7.srv", [OVER_TIME_7.replace("271", "265")], "TIMED_OUT C 265"),
    ("torque", "7.srv", [pbs_text("7.srv", job_state="C", exit_status="265")], "FAILED C 265"),
    ("torque", "7", [pbs_text("7", job_state="R")], "RUNNING R"),
    ("torque", "7[3]", [pbs_text("7[]", job_state="R") + pbs_text("7[3]", job_state="Q")], "QUEUED Q"),
    ("torque", "7.srv", [Answer(153, "", "qstat: Unknown Job Id Error 7.srv\n")], "None unknown"),
    ("torque", "7.srv", [Answer(111, "", "qstat: cannot connect to server srv (errno=111)")], "nothing"),
    ("pbs", "7.srv", [OK, pbs_text("7.srv", job_state="Q", comment="Can Never Run: ncpus")], "QUEUED Q never"),
    ("pbs", "7.srv", [OK, pbs_text("7.srv", job_state="?")], "nothing"),
    ("pbs", "7.srv", [RUNNING_7, ENDED_7], "SUCCEEDED F 0"),
    ("pbs", "7.srv", [FINISHED_7, pbs_text("7.srv", job_state="F", Exit_status="-29")], "TIMED_OUT F -29"),
    ("pbs", "7.srv", [RUNNING_7, NO_HISTORY], "RUNNING R"),
    ("pbs", "7.srv", [UNKNOWN_7, NO_HISTORY], "None unknown"),
    ("pbs", "7.srv", [NO_SERVER] * 2, "nothing"),
    ("pbs", "7.srv", [Answer(None, "", "")] * 2, "nothing"),
    ("pbs", "7.srv", [OK, pbs_text("70.srv", job_state="R") + pbs_text("7.srv", job_state="R")], "RUNNING R"),
    ("pbs", "7[3].srv", [OK, pbs_text("7[3].srv", job_state="X", Exit_status="5", substate="93")], "FAILED X 5"),
    ("pbs", "7[3].srv", [pbs_text("7[3].srv", job_state="X", substate="92"), OK], "CANCELLED X unbegun"),
    ("pbs", "7[3].srv", [OK, pbs_text("7[3].srv", job_state="F", substate="91")], "CANCELLED F"),
    ("pbs", "7[3].srv", [OK, pbs_text("7[3].srv", job_state="X", substate="93")], "FAILED X"),
    ("pbs", "7.srv", [OK, pbs_text("7.srv", job_state="F", substate="92")], "FAILED F"),
    ("pbs", "7.srv", [OK, ODD_7], "SUCCEEDED F 0"),
    ("slurm", "7", [squeue("7", "PENDING", reason="Priority"), NO_DATABASE], "QUEUED PENDING"),
    ("slurm", "7", [squeue("7", "PENDING", reason="PartitionNodeLimit"), NO_DATABASE], "QUEUED PENDING never"),
    ("slurm", "7", [squeue("7", "PENDING", reason="DependencyNeverSatisfied"), NO_DATABASE], "QUEUED PENDING never"),
    ("slurm", "7", [squeue("7", "PENDING", reason="AssocMaxCpuPerJobLimit"), NO_DATABASE], "QUEUED PENDING never"),
    ("slurm", "7", [squeue("7", "PENDING", reason="AssocGrpCpuLimit"), NO_DATABASE], "QUEUED PENDING"),
    ("slurm", "7", [squeue("7", "COMPLETING"), NO_DATABASE], "RUNNING COMPLETING"),
    ("slurm", "7", [squeue("7", "COMPLETED"), NO_DATABASE], "SUCCEEDED COMPLETED 0"),
    ("slurm", "7", [squeue("7", "FAILED", "768"), NO_DATABASE], "FAILED FAILED 3"),
    ("slurm", "7", [squeue("7", "FAILED", "9"), NO_DATABASE], "FAILED FAILED 137"),
    ("slurm", "7", [squeue("7", "TIMEOUT", "9"), NO_DATABASE], "TIMED_OUT TIMEOUT 137"),
    ("slurm", "7", [squeue("7", "NODE_FAIL"), NO_DATABASE], "FAILED NODE_FAIL 0"),
    ("slurm", "7", [NO_JOB, NO_DATABASE], "None unknown"),
    ("slurm", "7", [squeue("8", "RUNNING"), NO_DATABASE], "None unknown"),
    ("slurm", "7", [squeue("7", "SOMETHING_NEW"), NO_DATABASE], "nothing"),
    ("slurm", "7", [OK, lines(f"7|CANCELLED by 1000|0:15|None|{JOB_NAME}")], "CANCELLED CANCELLED by 1000 143"),
    ("slurm", "7", [squeue("7", "RUNNING"), lines(f"7|COMPLETED|0:0|None|{JOB_NAME}")], "SUCCEEDED COMPLETED 0"),
    ("slurm", "7", [Answer(1, "", "slurm_load_jobs error: " + NO_CONTROLLER), NO_DATABASE], "nothing"),
    ("slurm", "7", [OK, lines(f"7|TIMEOUT|0:0|None|{JOB_NAME}")], "TIMED_OUT TIMEOUT 0"),
    ("slurm", "7", [OK, lines(f"7|NODE_FAIL|1:0|None|{JOB_NAME}")], "FAILED NODE_FAIL 1"),
    ("slurm", "7", [OK, lines(f"7|OUT_OF_MEMORY|0:125|None|{JOB_NAME}")], "FAILED OUT_OF_MEMORY 253"),
    ("slurm", "7", [OK, lines("7|COMPLETED|0:0|None|a|b")], "SUCCEEDED COMPLETED 0"),
    ("slurm", "7", [OK, lines(f"7|COMPLETED|0:0|None|{JOB_NAME}", f"7|FAILED|3:0|None|{JOB_NAME}")], "FAILED FAILED 3"),
    ("slurm", "7", [OK, NO_DATABASE_NOW, lines(f"7|FAILED|{JOB_NAME}")], "FAILED FAILED"),
    ("slurm", "7", [OK, NO_DATABASE_NOW, Answer(1, "", "sacct: error: no job completion")], "None unknown"),
    ("slurm", "7_3", [OK, lines(f"7_[2-5]|CANCELLED by 0|0:0|None|{JOB_NAME}")], UNBEGUN.replace("D 0", "D by 0 0")),
    ("slurm", "7", [OK, lines(f"7|DEADLINE|0:0|None|{JOB_NAME}")], "FAILED DEADLINE 0"),
    ("slurm", "7", [OK, lines(f"7|RUNNING|0:0|None|{JOB_NAME}")], "None unknown"),
    ("slurm", "7", [NO_JOB, lines(f"7|PENDING|0:0|None|{JOB_NAME}")], "None unknown"),
    ("slurm", "7_3", [squeue("7_4", "PENDING"), lines(f"7_[3-4]|PENDING|0:0|None|{JOB_NAME}")], "None unknown"),
    ("slurm", "7_3", [squeue("7_4", "RUNNING"), lines(f"7_[3-4]|CANCELLED|0:0|None|{JOB_NAME}")], UNBEGUN),
    ("slurm", "7_3", [squeue("7", "CANCELLED"), NO_DATABASE], UNBEGUN),
    ("slurm", "7_3", [OK, lines(f"7|CANCELLED|0:0|None|{JOB_NAME}")], UNBEGUN),
    ("slurm", "7_3", [OK, lines(f"7_3|FAILED|3:0|None|{JOB_NAME}", "7_[2-4]|CANCELLED|0:0||x")], "FAILED FAILED 3"),
    ("slurm", "7_3", [squeue("7_4", "CANCELLED"), NO_DATABASE], "None unknown"),
    ("slurm", "7_3", [squeue("7_[2-5,9%2]", "PENDING"), NO_DATABASE], "QUEUED PENDING"),
    ("slurm", "7_9", [squeue("7_[2-5,9%2]", "PENDING"), NO_DATABASE], "QUEUED PENDING"),
    ("slurm", "7_6", [squeue("7_[2-5,9%2]", "PENDING"), NO_DATABASE], "None unknown"),
]  # fmt: skip


ELEMENT_IDS = {"pbs": ("7[].srv", "7[3].srv"), "torque": ("7[].srv.edu", "7[3].srv.edu"), "slurm": ("7", "7_3")}


@pytest.mark.parametrize("name", sorted(ELEMENT_IDS))
def test_ids_of_elements(name: str) -> None:
    array, element = ELEMENT_IDS[name]
    module = scheduler(name)
    assert (module.element_id(array, 3), module.array_id(element)) == (element, array)
    assert module.array_id(array) == array
    assert module.array_id("7.srv") == "7.srv"


def test_the_local_engine_has_no_elements() -> None:
    module = scheduler("local")
    assert module.array_id("abc@host") == "abc@host"
    with pytest.raises(UserError, match="no job arrays"):
        module.element_id("abc@host", 3)


@pytest.mark.parametrize("name", sorted(ELEMENT_IDS))
def test_an_array_is_asked_for_once_and_not_element_by_element(name: str) -> None:
    array, _ = ELEMENT_IDS[name]
    module = scheduler(name)
    commands = module.status_argv([module.element_id(array, index) for index in range(500)] + ["8.srv"])
    words = [word.split("=")[-1].split(",") for argv in commands for word in argv]
    assert [word.count(array) for word in words if array in word] == [1] * len(commands)
    assert len(commands) <= 3
    if name != "slurm":
        assert all("-t" in argv for argv in commands)
        assert all("-t" not in argv for argv in module.status_argv(["8.srv"]))


def elements_of(name: str, answers: list[Answer], count: int = 3) -> list[str]:
    module, (array, _) = scheduler(name), ELEMENT_IDS[name]
    ids = [module.element_id(array, index) for index in range(count)]
    found = module.parse_status(ids, answers)
    return [in_words(found.get(job_id)) for job_id in ids]


def test_elements_end_each_in_its_way() -> None:
    text = (
        pbs_text("7[].srv", job_state="B", array_state_count="Queued:1 Running:0 Exiting:0 Expired:2")
        + pbs_text("7[0].srv", job_state="X", Exit_status="0", substate="92")
        + pbs_text("7[1].srv", job_state="X", Exit_status="-29", substate="93")
        + pbs_text("7[2].srv", job_state="Q")
    )
    assert elements_of("pbs", [Answer(0, text, ""), OK]) == ["SUCCEEDED X 0", "TIMED_OUT X -29", "QUEUED Q"]
    rows = (
        squeue("7_0", "COMPLETED") + squeue("7_1", "NODE_FAIL") + squeue("7_2", "PENDING", reason="JobArrayTaskLimit")
    )
    assert elements_of("slurm", [Answer(0, rows, ""), NO_DATABASE]) == [
        *("SUCCEEDED COMPLETED 0", "FAILED NODE_FAIL 0", "QUEUED PENDING")
    ]


def test_elements_of_an_array_that_is_gone_are_gone() -> None:
    gone = Answer(153, "", "qstat: Unknown Job Id 7[].srv\n")
    assert elements_of("pbs", [gone, NO_HISTORY]) == ["None unknown"] * 3
    ended = pbs_text("7[].srv", job_state="F", Exit_status="0") + pbs_text("7[1].srv", job_state="F", Exit_status="3")
    assert elements_of("pbs", [FINISHED_7, Answer(0, ended, "")]) == ["None F", "FAILED F 3", "None F"]
    unknown = Answer(1, "", "slurm_load_jobs error: Invalid job id specified\n")
    assert elements_of("slurm", [unknown, NO_DATABASE]) == ["None unknown"] * 3


def test_elements_share_the_fate_of_an_array_that_can_never_run() -> None:
    text = pbs_text("7[].srv", job_state="Q", comment="Can Never Run: ncpus") + pbs_text("7[0].srv", job_state="Q")
    assert elements_of("pbs", [Answer(0, text, ""), OK], 2) == ["QUEUED Q never", "nothing"]


def test_an_element_of_torque_is_found_by_the_name_that_was_submitted() -> None:
    record = pbs_text("7[3].srv", Job_Name="h1g2-3", job_state="Q") + pbs_text("8.srv", Job_Name="a-1", job_state="Q")
    found = scheduler("torque").parse_find(Answer(0, "ids 7[3].srv 8.srv\n" + record, "")) or []
    assert [job.job_name for job in found] == ["h1g2", "a-1"]


def test_an_array_in_the_queue_counts_each_element_that_has_not_ended() -> None:
    record = pbs_text(
        "7[].srv", Job_Name="h1", job_state="B", array_state_count="Queued:3 Running:2 Exiting:1 Expired:5"
    )
    (job,) = scheduler("pbs").parse_find(Answer(0, "ids 7[].srv\n" + record, "")) or []
    assert job.elements == 6
    (alone,) = scheduler("pbs").parse_find(Answer(0, "ids 1.s\n" + RUNNING_1, "")) or []
    assert alone.elements == 1


@pytest.mark.parametrize(("name", "job_id", "said", "expected"), STATES)
def test_state(name: str, job_id: str, said: list[str | Answer], expected: str) -> None:
    answers = [part if isinstance(part, Answer) else Answer(0, part, "") for part in said]
    found = scheduler(name).parse_status([job_id], answers)
    assert in_words(found.get(job_id)) == expected
    assert all(key == observation.job_id == job_id for key, observation in found.items())


def in_words(seen: Any) -> str:
    if seen is None:
        return "nothing"
    state = seen.state.value if seen.state else "None"
    status = "" if seen.exit_status is None else str(seen.exit_status)
    notes = ["never" if seen.never_runnable else "", "unbegun" if seen.if_unbegun and seen.state else ""]
    return " ".join(filter(None, [state, seen.native_state, status, *notes]))


def found_names(name: str, answer: Answer) -> dict[str, str] | None:
    found = scheduler(name).parse_find(answer)
    return None if found is None else {job.job_name: job.job_id for job in found}


RUNNING_1 = pbs_text("1.s", Job_Name="h1", job_state="R")
RUNNING_2 = pbs_text("2[].s", Job_Name="h2", job_state="B")


@pytest.mark.parametrize(
    ("name", "answer", "expected"),
    [
        ("pbs", Answer(0, "ids\n", ""), {}),
        ("pbs", Answer(0, "ids 1.s 2[].s\n" + RUNNING_1 + RUNNING_2, ""), {"h1": "1.s", "h2": "2[].s"}),
        ("pbs", Answer(0, "ids 1.s 2[].s\n" + RUNNING_1, ""), None),  # a record is missing
        ("pbs", Answer(35, "ids 1.s 2.s\n" + RUNNING_1, "qstat: 2.s Job has finished, use -x"), {"h1": "1.s"}),
        ("pbs", Answer(162, "", "qselect: cannot connect to server s"), None),
        ("pbs", Answer(None, "ids 1.s\n" + RUNNING_1, ""), None),
        ("pbs", Answer(0, "", ""), None),
        ("torque", Answer(0, "ids 1.s\n" + RUNNING_1, ""), {"h1": "1.s"}),
        ("torque", Answer(153, "ids 1.s\n", "qstat: Unknown Job Id Error 1.s"), {}),
        ("slurm", Answer(0, "", ""), {}),
        ("slurm", Answer(0, squeue("1", "RUNNING", name="h1"), ""), {"h1": "1"}),
        ("slurm", Answer(1, "", "slurm_load_jobs error: Unable to contact slurm controller"), None),
        ("local", Answer(1, "", ""), None),
    ],
)
def test_jobs_are_found_by_name_or_not_at_all(name: str, answer: Answer, expected: dict[str, str] | None) -> None:
    assert found_names(name, answer) == expected


def test_every_row_of_the_tables_names_a_scheduler_and_none_is_left_out() -> None:
    def rows() -> Iterator[str]:
        yield from (row[0] for row in SUBMISSIONS)

    assert set(EXPECTED) == set(rows()) == set(NAMES)
