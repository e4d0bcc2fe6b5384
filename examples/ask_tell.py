"""Step by step: ask for a point, evaluate it yourself, tell its value; save, and go on later. Takes some seconds."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import carbo

SPACE = carbo.Space(
    {
        "flour": carbo.Integer(200, 400, step=20),
        "water": carbo.Integer(100, 300, step=20),
        "yeast": carbo.Ordinal([2, 4, 7, 10]),
        "oven": carbo.Categorical(["gas", "stone", "electric"]),
    }
)


def taste(params: dict[str, Any]) -> float:
    """The taste, best near 10. The optimiser minimises, so it is told the negative."""
    wetness = params["water"] / params["flour"]
    bonus = {"gas": 0.0, "stone": 1.5, "electric": 0.5}[params["oven"]]
    return float(8 - 20 * (wetness - 0.65) ** 2 - 0.2 * abs(params["yeast"] - 4) + bonus)


def main() -> None:
    optimizer = carbo.Optimizer(SPACE, seed=0, settings={"initial": 6})
    optimizer.tell({"flour": 300, "water": 200, "yeast": 7, "oven": "gas"}, -7.3)  # from an old notebook
    for _ in range(10):
        params = optimizer.ask()
        optimizer.tell(params, -taste(params))

    # The whole state is JSON: write it to a file, and go on tomorrow with the same suggestions.
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "bread.json"
        file.write_text(json.dumps(optimizer.state()))
        tomorrow = carbo.Optimizer.from_state(SPACE, json.loads(file.read_text()))

    for params in tomorrow.ask(4):  # four different breads, to be baked together
        tomorrow.tell(params, -taste(params))

    assert tomorrow.best is not None
    print(f"best of {len(tomorrow)}: {-tomorrow.best.value:.2f} with {tomorrow.best.params}")
    mean, deviation = tomorrow.predict({"flour": 300, "water": 200, "yeast": 4, "oven": "stone"})
    print(f"the model's guess for a bread never baked: {-mean:.2f} +- {deviation:.2f}")


if __name__ == "__main__":
    main()
