"""Expansion: the product, zip, exclude and include as GitHub documents them, conditional and derived values."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.config.sweep_file import parse_sweep
from harness.errors import ConfigError
from harness.model.sweep import Condition, Grid, Sweep
from harness.plan.expand import expand


def combinations(grid: Grid) -> list[dict[str, Any]]:
    return expand(Sweep(name="x", grids=(grid,))).combinations


def sweep_combinations(text: str) -> list[dict[str, Any]]:
    return expand(parse_sweep("name: x\n" + text)).combinations


def test_the_first_axis_varies_slowest() -> None:
    assert combinations(Grid(matrix={"nodes": (1, 2), "workers": (0, 4)})) == [
        {"nodes": 1, "workers": 0},
        {"nodes": 1, "workers": 4},
        {"nodes": 2, "workers": 0},
        {"nodes": 2, "workers": 4},
    ]


def test_zip_groups_advance_together_and_multiply_the_rest() -> None:
    grid = Grid(matrix={"workers": (0, 4)}, zip=({"nodes": (1, 2), "batch_size": (64, 32)}, {"echo": (1, 2)}))
    rows = [(c["workers"], c["nodes"], c["batch_size"], c["echo"]) for c in combinations(grid)]
    assert rows == [(w, n, b, e) for w in (0, 4) for n, b in ((1, 64), (2, 32)) for e in (1, 2)]


def test_base_alone_is_one_point() -> None:
    assert combinations(Grid(base={"workers": 3})) == [{"workers": 3}]


def test_include_as_in_githubs_documented_example() -> None:
    """The example of "Expanding or adding matrix configurations": fruit, animal, colour and shape by other names."""
    grid = Grid(
        matrix={"storage": ("apple", "pear"), "encoding": ("cat", "dog")},
        include=(
            {"model": "green"},
            {"model": "pink", "encoding": "cat"},
            {"storage": "apple", "dataset": "circle"},
            {"storage": "banana"},
            {"storage": "banana", "encoding": "cat"},
        ),
    )
    assert combinations(grid) == [
        {"storage": "apple", "encoding": "cat", "model": "pink", "dataset": "circle"},
        {"storage": "apple", "encoding": "dog", "model": "green", "dataset": "circle"},
        {"storage": "pear", "encoding": "cat", "model": "pink"},
        {"storage": "pear", "encoding": "dog", "model": "green"},
        {"storage": "banana"},
        {"storage": "banana", "encoding": "cat"},
    ]


def test_include_without_a_matrix_is_the_list_of_combinations() -> None:
    grid = Grid(base={"nodes": 1}, include=({"workers": 1}, {"workers": 2, "nodes": 4}))
    assert combinations(grid) == [{"nodes": 1, "workers": 1}, {"nodes": 4, "workers": 2}]


def test_exclude_needs_a_partial_match_and_comes_before_include() -> None:
    grid = Grid(
        matrix={"nodes": (1, 2), "workers": (0, 4)},
        exclude=(Condition(match={"nodes": 2}),),
        include=({"nodes": 2, "workers": 0, "echo": 3},),
    )
    assert combinations(grid) == [
        {"nodes": 1, "workers": 0},
        {"nodes": 1, "workers": 4},
        {"nodes": 2, "workers": 0, "echo": 3},
    ]


def test_exclude_sees_defaults_base_conditional_and_derived_values() -> None:
    text = """\
base: {workload: replay, prefetch: 2}
matrix: {workers: [1, 2, 3, 4]}
when: [{where: "workers == 2", set: {echo: 5}}]
derive: {cpu_cores: "workers * 2"}
exclude:
  - {echo: 5}
  - {cpu_cores: 8, multiprocessing: false}
  - where: "workers == 1 and batch_size == 32 and prefetch == 2"
"""
    assert [c["workers"] for c in sweep_combinations(text)] == [3]


def test_where_takes_an_expression_or_values() -> None:
    text = "base: {workload: replay}\nmatrix: {workers: [1, 2]}\nexclude: [{where: {workers: 1}}]\n"
    assert [c["workers"] for c in sweep_combinations(text)] == [2]


def test_later_conditions_see_and_overrule_earlier_ones() -> None:
    text = """\
base: {workload: replay}
matrix: {workers: [1, 2]}
when:
  - {where: {workers: 2}, set: {echo: 2, nodes: 3}}
  - {where: "echo == 2", set: {echo: 4}}
"""
    rows = [(c["workers"], c.get("echo"), c.get("nodes")) for c in sweep_combinations(text)]
    assert rows == [(1, None, None), (2, 4, 3)]


def test_derived_values_follow_each_other_whatever_their_order() -> None:
    text = """\
base: {workload: replay, nodes: 2}
matrix: {ranks_per_node: [2, 4]}
derive:
  workers: "cpu_cores // 2"
  cpu_cores: "ranks_per_node * 4 / 2"
  echo: "ranks if ranks < 8 else 8"
  options.produce_s: "1 / ranks"
"""
    rows = [(c["cpu_cores"], c["workers"], c["echo"], c["options.produce_s"]) for c in sweep_combinations(text)]
    assert rows == [(4, 2, 4, 0.25), (8, 4, 8, 0.125)]
    assert all(type(cores) is int for cores, *_ in rows)


def test_a_derived_value_can_bound_its_own_axis() -> None:
    text = "base: {workload: replay}\nmatrix: {cpu_cores: [2, 8]}\nderive: {cpu_cores: 'min(cpu_cores, 4)'}\n"
    assert [c["cpu_cores"] for c in sweep_combinations(text)] == [2, 4]


@pytest.mark.parametrize(
    ("derive", "message"),
    [
        ("4 / workers", "sweep.yml:5: '4 / workers' has no value: division by zero at workers=0"),
        (
            "(workers + 1) / 2",
            "sweep.yml:5: derive cpu_cores: '(workers + 1) / 2' gives 0.5; it must be a valid integer",
        ),
        ("workers - 1", "gives -1; it must be greater than or equal to 1 at workers=0"),
        ("'four'", "gives 'four'; it must be a valid integer"),
        ("1e308 * 10", "gives inf"),
        ("10 ** 400", "gives a number that is too large"),
        ("1e30", "gives 1e+30; it must be a valid integer"),
    ],
)
def test_expressions_that_fail_name_line_and_combination(derive: str, message: str) -> None:
    text = f'base: {{workload: replay}}\nmatrix: {{workers: [0, 4]}}\nderive:\n  cpu_cores: "{derive}"\n'
    with pytest.raises(ConfigError) as caught:
        sweep_combinations(text)
    assert message in str(caught.value)


def test_derived_names_are_checked_too() -> None:
    with pytest.raises(ConfigError, match="gives 'tensorfow'; did you mean 'tensorflow'"):
        sweep_combinations("base: {workload: replay}\nderive: {framework: \"'tensorfow'\"}\n")


def test_a_product_too_large_to_mean_is_refused_at_once() -> None:
    ten = tuple(range(1, 11))
    axes = ("cpu_cores", "workers", "prefetch", "nodes", "echo", "seed", "batch_size", "max_queue_size")
    with pytest.raises(ConfigError, match="make 100,000,000 combinations; a sweep may have 200,000"):
        combinations(Grid(matrix=dict.fromkeys(axes, ten)))


def test_conditions_without_effect_are_noted() -> None:
    text = """\
name: x
base: {workload: replay}
matrix: {workers: [1, 2]}
exclude:
  - where: "workers > 1"
  - {workers: 2}
  - {workers: 3}
when:
  - where: {workload: dcgan_mnist}
    set: {echo: 2}
  - where: "workers == 1"
    set: {echo: 3}
"""
    assert expand(parse_sweep(text, "s.yml")).notes == (
        "s.yml:7: this exclude holds for no combination",
        "s.yml:9: this when holds for no combination",
    )


def test_a_condition_shared_by_parts_needs_an_effect_in_one_of_them() -> None:
    text = "name: x\nbase: {workload: replay}\nmatrix: {nodes: [1, 2]}\nexclude: [{workers: 1, nodes: 2}]\n"
    text += "parts:\n  - base: {workers: 1}\n  - base: {workers: 2}\n"
    assert expand(parse_sweep(text)).notes == ()


def test_grids_follow_one_another() -> None:
    sweep = Sweep(name="x", grids=(Grid(base={"nodes": 1}), Grid(matrix={"nodes": (1, 2)})))
    assert [c["nodes"] for c in expand(sweep).combinations] == [1, 1, 2]


AXES = ("cpu_cores", "workers", "prefetch", "nodes", "echo")
values = st.integers(1, 4)
matrices = st.dictionaries(
    st.sampled_from(AXES[:3]), st.lists(values, min_size=1, max_size=3, unique=True).map(tuple), min_size=1
)
rows = st.dictionaries(st.sampled_from(AXES), values, min_size=1, max_size=3)


@given(matrices)
def test_the_product_has_every_combination_once(matrix: dict[str, tuple[int, ...]]) -> None:
    found = combinations(Grid(matrix=matrix))  # type: ignore[arg-type]
    expected = [dict(zip(matrix, row, strict=True)) for row in itertools.product(*matrix.values())]
    assert found == expected


@given(matrices, st.lists(st.dictionaries(st.sampled_from(AXES[:3]), values, min_size=1, max_size=2), max_size=3))
def test_exclude_leaves_exactly_what_no_item_matches(
    matrix: dict[str, tuple[int, ...]], excluded: list[dict[str, int]]
) -> None:
    conditions = tuple(Condition(match=item) for item in excluded)  # type: ignore[arg-type]
    result = expand(Sweep(name="x", grids=(Grid(matrix=matrix, exclude=conditions),)))  # type: ignore[arg-type]
    whole = combinations(Grid(matrix=matrix))  # type: ignore[arg-type]
    defaults = {"cpu_cores": 1, "workers": 0, "prefetch": None}

    def matches(combination: dict[str, int], item: dict[str, int]) -> bool:
        return {**defaults, **combination}.items() >= item.items()

    assert result.combinations == [c for c in whole if not any(matches(c, item) for item in excluded)]
    assert result.excluded == len(whole) - len(result.combinations)


@given(matrices, st.lists(rows, max_size=4))
def test_include_adds_to_what_it_fits_and_stands_alone_otherwise(
    matrix: dict[str, tuple[int, ...]], included: list[dict[str, int]]
) -> None:
    found = combinations(Grid(matrix=matrix, include=tuple(included)))  # type: ignore[arg-type]
    original = combinations(Grid(matrix=matrix))  # type: ignore[arg-type]
    fits = [[all(c[k] == v for k, v in item.items() if k in matrix) for item in included] for c in original]
    # original values are never changed; of added values the last fitting item decides
    for combination, result, fit in zip(original, found, fits, strict=False):
        added = {k: v for item, fitting in zip(included, fit, strict=True) if fitting for k, v in item.items()}
        assert result == {**added, **combination}
    alone = [item for i, item in enumerate(included) if not any(fit[i] for fit in fits)]
    assert found[len(original) :] == alone
