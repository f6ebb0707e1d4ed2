from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from harness.runtime.affinity import cores_of, findings, one_per_core, quota_findings, share, thread_environment

FLAT = {cpu: (0, cpu) for cpu in range(64)}
#: 2 packages of 4 cores, two hardware threads each, numbered as Linux does on most servers: 8 … 15 are the seconds
SMT = {cpu: (cpu % 8 // 4, cpu % 4) for cpu in range(16)}


def test_unbound_ranks_split_what_the_job_has() -> None:
    assert share([range(8)] * 2, 4, FLAT) == [(0, 1, 2, 3), (4, 5, 6, 7)]


def test_one_rank_takes_only_what_it_asked_for() -> None:
    assert share([range(40)], 5, FLAT) == [(0, 1, 2, 3, 4)]


def test_exact_bindings_stay_as_the_launcher_made_them() -> None:
    masks = [(6, 7), (2, 3)]
    assert share(masks, 2, FLAT) == masks
    # Open MPI binds to cores, with both of their hardware threads
    assert share([(0, 8, 1, 9)], 2, SMT) == [(0, 1, 8, 9)]


def test_ranks_bound_to_sockets_share_each_socket() -> None:
    """mpirun --map-by socket: ranks 0 and 2 on the first package, 1 and 3 on the second."""
    first, second = range(0, 20), range(20, 40)
    shares = share([first, second, first, second], 10, FLAT)
    assert shares == [tuple(range(0, 10)), tuple(range(20, 30)), tuple(range(10, 20)), tuple(range(30, 40))]


def test_a_rank_yields_to_a_neighbour_that_is_bound_exactly() -> None:
    assert share([range(4), (0, 1)], 2, FLAT) == [(2, 3), (0, 1)]


def test_too_few_cpus_are_all_used() -> None:
    assert share([range(3)] * 2, 2, FLAT) == [(0, 1), (2,)]
    assert share([(0,), (0,)], 2, FLAT) == [(0,), (0,)]
    assert share([range(2)] * 2, 2, FLAT) == [(0, 1), (0, 1)]


def test_a_silent_neighbour_takes_nothing() -> None:
    assert share([range(4), None], 2, FLAT) == [(0, 1), ()]


def test_cores_come_before_second_hardware_threads() -> None:
    assert one_per_core(range(16), SMT)[:8] == list(range(8))
    adjacent = {cpu: (0, cpu // 2) for cpu in range(8)}
    assert one_per_core(range(8), adjacent) == [0, 2, 4, 6, 1, 3, 5, 7]
    assert share([range(8)] * 2, 2, adjacent) == [(0, 2), (4, 6)]


@given(
    masks=st.lists(st.sets(st.integers(0, 15), min_size=1), min_size=1, max_size=6),
    requested=st.integers(1, 8),
)
def test_shares_lie_in_their_masks_and_are_disjoint_where_possible(masks: list[set[int]], requested: int) -> None:
    shares = share([sorted(mask) for mask in masks], requested, FLAT)
    for mask, mine in zip(masks, shares, strict=True):
        assert mine and set(mine) <= mask
        assert len(mine) <= requested or set(mine) == mask
    if all(mask == masks[0] for mask in masks) and len(masks[0]) >= requested * len(masks):
        assert len({cpu for mine in shares for cpu in mine}) == requested * len(masks)


def test_topology_is_read_and_unknown_topology_counts_every_cpu(tmp_path: Path) -> None:
    for cpu in (0, 1):
        topology = tmp_path / f"cpu{cpu}" / "topology"
        topology.mkdir(parents=True)
        (topology / "physical_package_id").write_text("0\n")
        (topology / "core_id").write_text("3\n")
    assert cores_of([0, 1, 2], tmp_path) == {0: (0, 3), 1: (0, 3), 2: (-1, 2)}


def codes(*args: object) -> list[str]:
    return [found.code for found in findings(*args)]  # type: ignore[arg-type]


def test_findings_name_the_difference_and_the_remedy() -> None:
    assert codes(1, (0,), [(0,)], 0, (0,)) == []
    too_few = findings(3, (0,), [(0,)], 0, (0,))
    assert [found.code for found in too_few] == ["fewer_cores_than_requested"]
    assert too_few[0].evidence == {"requested_cores": 3, "launcher_cpus": [0], "allowed_cpus": [0]}
    assert "--map-by socket:PE=3 --bind-to core" in too_few[0].advice
    assert codes(1, (0, 1), [(0,)], 0, (0, 1)) == ["more_cores_than_requested"]
    assert codes(2, (0, 1), [(0, 1), (1, 2)], 0, (0, 1)) == ["cores_shared_by_ranks"]


def test_every_pool_gets_the_same_number_of_threads() -> None:
    environment = thread_environment(6)
    assert set(environment.values()) == {"6"}
    assert {"OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"} <= environment.keys()


def test_second_hardware_threads_are_no_cores() -> None:
    """Two CPUs of one core for two cores asked for; two CPUs of two cores are what was meant."""
    one_core, two_cores = {0: (0, 0), 1: (0, 0)}, {0: (0, 0), 1: (0, 1)}
    assert [found.code for found in findings(2, (0, 1), [(0, 1)], 0, (0, 1), one_core)] == ["hardware_threads_as_cores"]
    assert findings(2, (0, 1), [(0, 1)], 0, (0, 1), two_cores) == []


def test_the_second_hardware_thread_of_a_neighbours_core_is_no_core_either() -> None:
    """Two ranks of four cores each, each bound to CPUs of its own, on the same four cores."""
    masks = [range(4), range(8, 12)]
    shares = share(masks, 4, SMT)
    assert shares == [(0, 1, 2, 3), (8, 9, 10, 11)]
    for rank, other in ((0, 1), (1, 0)):
        [found] = findings(4, masks[rank], shares, rank, shares[rank], SMT)
        assert found.code == "hardware_threads_as_cores"
        assert found.evidence["other_ranks_cpus"] == list(shares[other])


def test_a_third_rank_where_there_are_cores_for_two_is_told_of() -> None:
    shares = share([range(16)] * 3, 4, SMT)
    assert shares[2] == (8, 9, 10, 11)
    told = [[found.code for found in findings(4, range(16), shares, rank, shares[rank], SMT)] for rank in range(3)]
    assert told == [["hardware_threads_as_cores"], [], ["hardware_threads_as_cores"]]


def test_both_hardware_threads_of_a_core_are_one_core() -> None:
    """As Open MPI binds with PE=1, or two ranks that have cores enough."""
    assert findings(1, (0, 8), [(0, 8), (1, 9)], 0, (0, 8), SMT) == []
    assert findings(4, range(16), share([range(16)] * 2, 4, SMT), 1, (4, 5, 6, 7), SMT) == []


def test_a_rank_stays_on_one_package_whichever_way_their_cpus_are_numbered() -> None:
    """Even numbers on the first package, odd ones on the second."""
    in_turn = {cpu: (cpu % 2, cpu // 2) for cpu in range(8)}
    assert share([range(8)], 3, in_turn) == [(0, 2, 4)]
    assert share([range(8)] * 2, 4, in_turn) == [(0, 2, 4, 6), (1, 3, 5, 7)]
    threads = {cpu: (cpu % 2, cpu % 8 // 2) for cpu in range(16)}
    assert one_per_core(range(16), threads)[:8] == [0, 2, 4, 6, 1, 3, 5, 7]


def test_a_quota_of_cpu_time_takes_cores_that_their_numbers_do_not_show() -> None:
    assert quota_findings(4, 2, None) == quota_findings(4, 2, 8.0) == []
    [found] = quota_findings(4, 2, 7.5)
    assert found.code == "fewer_cores_than_requested"
    assert found.evidence == {"requested_cores": 4, "ranks": 2, "quota_cpus": 7.5}
