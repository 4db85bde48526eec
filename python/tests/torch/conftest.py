"""These tests run where `margay exec` or `margay.enable()` put margay's driver in the place of NVIDIA's."""

import pytest

torch = pytest.importorskip("torch")

import margay.torch  # noqa: E402

margay.torch.install()


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(20)
