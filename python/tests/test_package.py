"""The package as it is installed."""

import margay


def test_version_is_a_release_number():
    assert [part.isdigit() for part in margay.__version__.split(".")] == [True, True, True]
