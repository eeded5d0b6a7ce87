"""Tests for pytest-xdist to run."""
import pytest

from task import square


@pytest.mark.parametrize("n", range(12))
def test_square(n):
    assert square(n) == n * n
