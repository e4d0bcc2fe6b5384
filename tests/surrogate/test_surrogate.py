"""The table of kernels: one entry makes a kernel that every door takes."""

from __future__ import annotations

import pytest

import carbo
from carbo.kernels.orders import Orders
from carbo.surrogate.surrogate import KERNELS
from tests.presets import CHEAP

SPACE = carbo.Space({f"x{i}": carbo.Binary() for i in range(6)})


def test_an_unknown_kernel_is_refused_with_the_names_there_are() -> None:
    said = r"setting 'kernel': expected one of product, orders, got 'matern'"
    with pytest.raises(carbo.SettingsError, match=said):
        carbo.Optimizer(SPACE, settings={"kernel": "matern"})
    with pytest.raises(carbo.SettingsError, match=said):
        carbo.minimize(lambda _: 0.0, SPACE, budget=3, settings={"kernel": "matern"})


def test_a_new_kernel_is_a_name_in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """The promise of the contributor's guide. The new kernel is the order kernel of order one, without pairs."""
    monkeypatch.setitem(KERNELS, "additive", lambda spectra, _: Orders(spectra, 1))
    optimizer = carbo.Optimizer(SPACE, seed=0, settings={**CHEAP, "kernel": "additive", "initial": 12})
    for _ in range(16):
        params = optimizer.ask()
        optimizer.tell(params, sum(params.values()))
    orders = optimizer.relevance().orders
    assert orders is not None
    assert list(orders) == ["1"]
    restored = carbo.Optimizer.from_state(SPACE, optimizer.state())
    assert restored.ask() == optimizer.ask()
