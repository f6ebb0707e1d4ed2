"""The functions are scipy's, and what scipy.special imports beside them is not."""

from __future__ import annotations

import subprocess
import sys

import pytest


def told(program: str) -> str:
    """What a fresh Python prints."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_package_and_what_it_imports_are_left_out() -> None:
    program = (
        "import sys; from harness.analysis import stats, steady; "
        "print(sorted({'scipy.special', 'scipy.stats', 'numpy.f2py', 'numpy.testing', 'unittest'} & set(sys.modules)))"
    )
    assert told(program) == "[]"


def test_who_imports_scipy_afterwards_has_all_of_it() -> None:
    program = (
        "from harness.analysis import student; import scipy.special; from scipy import optimize, stats\n"
        "assert scipy.special.stdtrit is student.stdtrit and scipy.special.stdtr is student.stdtr\n"
        "assert scipy.special.stdtridf is student.stdtridf\n"
        "print(scipy.special.comb(5, 2), stats.t.ppf(0.975, 3.3) == student.stdtrit(3.3, 0.975), "
        "round(optimize.least_squares(lambda x: x - 2, [0.0]).x[0], 6), scipy.special.logsumexp([0.0]))"
    )
    assert told(program) == "10.0 True 2.0 0.0"


@pytest.mark.parametrize(
    "before",
    ["import scipy.special", "from harness.analysis.student import special_functions as f; f('_of_another_scipy')"],
)
def test_the_package_serves_where_there_is_no_such_module_or_it_is_there(before: str) -> None:
    program = (
        f"{before}; import scipy.special; from harness.analysis import student; "
        "print(student.special_functions() is scipy.special, student.stdtrit is scipy.special.stdtrit)"
    )
    assert told(program) == "True True"
