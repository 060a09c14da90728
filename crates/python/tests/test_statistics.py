"""Statistics against closed forms."""

import array
import math

import pytest

import wearmark


def test_a_shift_has_the_error_of_its_share():
    real = list(range(100, 1100))
    shifted = [value + 50 for value in real]
    found = wearmark.error_ratio(shifted, real)
    mean = sum(real) / len(real)
    assert found["error_ratio"] == pytest.approx(50 / mean)
    assert found["error_ratio_interval"] is None
    assert wearmark.demerit(shifted, real) == pytest.approx(50)
    low, high = wearmark.error_ratio(shifted, real, block=50)["error_ratio_interval"]
    assert low <= found["error_ratio"] <= high


def test_buffers_and_lists_are_the_same():
    numbers = [5, 1, 9, 3]
    for code in "BHILQiq":
        given = array.array(code, numbers)
        assert wearmark.quantile(given, 0.5) == wearmark.quantile(numbers, 0.5) == 3
    with pytest.raises(ValueError, match="negative"):
        wearmark.quantile(array.array("q", [-1]), 0.5)
    with pytest.raises(TypeError, match="values"):
        wearmark.quantile(["x"], 0.5)


def test_the_bootstrap_holds_the_mean():
    samples = [math.sin(at) + 2 for at in range(200)]
    low, high = wearmark.bootstrap(samples)
    assert low < sum(samples) / 200 < high and high - low < 0.3
    assert wearmark.bootstrap(samples) == (low, high)
    low, high = wearmark.bootstrap([1.0, 2.0, 3.0], statistic="median")
    assert 1 <= low <= high <= 3
    with pytest.raises(ValueError, match="neither mean nor median"):
        wearmark.bootstrap(samples, statistic="mode")


def test_ratio_and_steadiness():
    ratio = wearmark.ratio_of_medians([2.0, 2.1, 1.9], [1.0, 1.05, 0.95])
    assert ratio["ratio"] == pytest.approx(2, rel=0.01) and ratio["low"] > 1.5
    assert wearmark.steady([100.0] * 5)["steady"]
    assert not wearmark.steady([100.0, 150.0, 200.0, 250.0, 300.0])["steady"]
    assert wearmark.mser5([900.0] * 10 + [10.0, 11.0] * 50) == 10
