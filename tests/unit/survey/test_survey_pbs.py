"""What PBS and Torque say of their server, queues and nodes, in the forms that sites show."""

from __future__ import annotations

from harness.jobs.survey import pbs
from harness.jobs.survey.facts import QueueFacts

GIB = 1024**3

SERVER = """\
Server: pbshost
    server_state = Active
    default_queue = route
    state_count = Transit:0 Queued:3 Held:4 Waiting:1 Running:0 Exiting:0 Begun
\t:0
    job_history_enable = True
    max_array_size = 10000
    pbs_license_min = 0
    pbs_version = 2022.1.3.20230425
"""
QUEUES = """\
Queue: route
    queue_type = Route
    route_destinations = small,gpu@pbshost
    enabled = True
    started = True

Queue: gpu
    queue_type = Execution
    total_jobs = 0
    max_queued = [u:PBS_GENERIC=20], [o:PBS_ALL=1000]
    resources_max.nodect = 4
    resources_max.walltime = 48:00:00
    resources_min.nodect = 2
    resources_default.walltime = 3600
    comment = one line = with an equals sign
    enabled = True
    started = True

Queue: old
    queue_type = Execution
    enabled = True
    started = False
"""
NODES = """\
gpu1[0]
     Mom = gpu1
     state = free
     resources_available.host = gpu1
     resources_available.mem = 263842692kb
     resources_available.ncpus = 20
     resources_available.ngpus = 2
     resources_available.gpu_model = V100
     resources_available.Qlist = gpu, ai

gpu1[1]
     Mom = gpu1
     state = job-busy
     jobs = 1.pbshost/0, 2.pbshost/1, 3.pbshost/2, 4.pbshost/3, 5.pbshost/4,
\t 6.pbshost/5
     resources_available.host = gpu1
     resources_available.mem = 263842692kb
     resources_available.ncpus = 20
     resources_available.ngpus = 2
     resources_available.gpu_model = V100
     resources_available.Qlist = gpu, ai

cpu1
     state = down,offline
     pcpus = 48
     resources_available.mem = 128gb
     resources_available.ncpus = 48
     queue = small

login
     state = free
     resources_available.ncpus = 0
"""


def test_a_pbs_site() -> None:
    site = pbs.site(SERVER, QUEUES, NODES)
    assert (site.scheduler, site.name, site.version, site.default_queue) == (
        "pbs",
        "pbshost",
        "2022.1.3.20230425",
        "route",
    )
    assert site.settings["job_history_enable"] == "True"
    assert site.settings["state_count"].endswith("Begun:0")


def test_virtual_nodes_of_one_host_are_one_node() -> None:
    gpu, cpu = pbs.site(SERVER, QUEUES, NODES).nodes
    assert (gpu.name, gpu.cpus, gpu.sockets, gpu.gpus, gpu.gpu_type) == ("gpu1", 40, 2, 4, "V100")
    assert gpu.memory_bytes == 2 * 263842692 * 1024
    assert (cpu.name, cpu.cpus, cpu.sockets, cpu.gpus, cpu.memory_bytes) == ("cpu1", 48, None, 0, 128 * GIB)


def test_queues_with_their_limits_and_routes() -> None:
    route, gpu, old = pbs.site(SERVER, QUEUES, NODES).queues
    assert route.is_default
    assert route.routes_to == ("small", "gpu")
    assert gpu == QueueFacts(
        "gpu",
        max_walltime_s=48 * 3600,
        default_walltime_s=3600,
        min_nodes=2,
        max_nodes=4,
        max_queued_jobs=20,
        max_array_size=10000,
    )
    assert not old.accepts


def test_a_queue_has_the_nodes_that_name_it_and_a_routing_queue_those_of_its_destinations() -> None:
    site = pbs.site(SERVER, QUEUES, NODES)
    assert [node.name for node in site.nodes_of("gpu")] == ["gpu1"]
    assert [node.name for node in site.nodes_of("small")] == ["cpu1"]
    assert [node.name for node in site.nodes_of("route")] == ["gpu1", "cpu1"]
    assert [node.name for node in site.nodes_of("old")] == ["gpu1", "cpu1"]  # no node is known to be left out


def test_torque_counts_slots_and_tells_its_sockets() -> None:
    server = "Server: head\n    default_queue = batch\n    pbs_version = 6.1.2\n    next_job_number = 7\n"
    queues = (
        "Queue: batch\n    max_user_queuable = 10\n    resources_max.walltime = 72:00:00\n    resources_max.nodes = 4\n"
        "    enabled = True\n    started = True\n"
    )
    nodes = (
        "n1\n     state = free\n     np = 32\n     ntype = cluster\n"
        "     status = rectime=1,ncpus=32,physmem=65842104kb,state=free,uname=Linux n1 3.10 = x\n"
        "     gpus = 2\n     total_sockets = 2\n     total_cores = 16\n"
    )
    site = pbs.site(server, queues, nodes)
    [node], [batch] = site.nodes, site.queues
    assert site.scheduler == "torque"
    assert (node.cpus, node.sockets, node.cores_per_socket, node.gpus) == (32, 2, 8, 2)
    assert node.memory_bytes == 65842104 * 1024
    assert (batch.max_walltime_s, batch.max_nodes, batch.max_queued_jobs) == (72 * 3600, 4, 10)


def test_torque_is_told_from_pbs_even_where_its_nodes_are_kept_from_users() -> None:
    assert pbs.site("Server: head\n    next_job_number = 7\n", "", "").scheduler == "torque"
    assert pbs.site(SERVER, QUEUES, "").scheduler == "pbs"


def test_odd_values_are_unknown_values() -> None:
    queues = "Queue: q\n    resources_max.walltime = long\n    resources_max.nodect = many\n    enabled = True\n"
    nodes = "n1\n     resources_available.ncpus = 4x\n     resources_available.mem = much\n"
    site = pbs.site("", queues, nodes)
    assert (site.queues[0].max_walltime_s, site.queues[0].max_nodes, site.queues[0].accepts) == (None, None, False)
    assert (site.nodes[0].cpus, site.nodes[0].memory_bytes) == (4, None)
