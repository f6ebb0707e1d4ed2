"""The short forms give what numpy and scipy give, to the last bit."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays as made
from scipy import stats as distributions

from harness.analysis import arrays

SERIES = made(np.float64, st.integers(1, 300), elements=st.floats(-1e6, 1e6))


@settings(deadline=None)
@given(SERIES)
def test_sums_means_and_medians(values: np.ndarray) -> None:
    assert arrays.total(values) == np.sum(values)
    assert arrays.mean(values) == np.mean(values)
    assert arrays.variance(values) == np.var(values)
    assert arrays.median(values) == np.median(values)


@settings(deadline=None)
@given(SERIES, st.sampled_from([0, 5, 50, 95, 99, 100]))
def test_quantiles(values: np.ndarray, percent: int) -> None:
    assert arrays.sorted_quantile(np.sort(values), percent / 100) == np.percentile(values, percent)


def test_no_value_and_nan() -> None:
    assert math.isnan(arrays.mean(np.zeros(0))) and math.isnan(arrays.median(np.zeros(0)))
    assert math.isnan(arrays.median(np.array([1.0, math.nan, 2.0])))


@pytest.mark.parametrize("df", [0.7, 1.0, 3.3, 19.0, 1e4, math.inf])
@pytest.mark.parametrize("share", [0.95, 0.975])
def test_student(share: float, df: float) -> None:
    assert arrays.t_quantile(share, df) == distributions.t.ppf(share, df)


@pytest.mark.parametrize("df", [1.0, 4.5, 30.0, math.inf])
@pytest.mark.parametrize("value", [0.0, 1.0, -2.5, 40.0])
def test_what_lies_beyond_in_students_t(value: float, df: float) -> None:
    law = distributions.norm if df == math.inf else distributions.t(df)
    assert arrays.t_beyond(value, df) == pytest.approx(2 * law.sf(abs(value)), rel=1e-9)


@pytest.mark.parametrize("df", [1.0, 1.5, 2.0, 7.3, 400.0])
def test_freedom_of_students_t_from_its_quantile(df: float) -> None:
    assert arrays.t_freedom(0.975, float(distributions.t.ppf(0.975, df))) == pytest.approx(df, rel=1e-6)


@pytest.mark.parametrize("quantile", [0.0, 1.0, 1.95])
def test_freedom_where_no_students_t_is_so_narrow(quantile: float) -> None:
    assert arrays.t_freedom(0.975, quantile) == math.inf


@pytest.mark.parametrize("count", [5, 20, 200, 999, 1500])
def test_autocovariances(count: int) -> None:
    values = np.random.default_rng(count).normal(size=count)
    lags = min(25, count - 1)
    assert list(arrays.autocovariances(values, lags)) == [values[k:] @ values[: count - k] for k in range(lags + 1)]
