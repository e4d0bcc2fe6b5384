"""A category graph says which choices are alike: an evaluation of one choice then teaches about the others too.

Alloys of a family behave alike. Half of them are measured here; the model then predicts the other half, once without
and once with a graph that connects the alloys of a family. Takes some seconds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import carbo

FAMILIES = {"Al": 3.0, "Ti": 0.5, "St": 2.0, "Ni": 1.2}  # and their wear, which the model has to find out
ALLOYS = [f"{family}-{number}" for family in FAMILIES for number in range(1, 7)]
COATINGS = ["none", "oil", "graphite"]


def alike() -> np.ndarray:
    """The weights of edges between alloys: 1 within a family, 0.02 between families. A networkx graph works too."""
    family = np.array([alloy[:2] for alloy in ALLOYS])
    weights = np.where(family[:, None] == family[None, :], 1.0, 0.02)
    np.fill_diagonal(weights, 0.0)
    return weights


def space(graph: Any) -> carbo.Space:
    return carbo.Space(
        {
            "alloy": carbo.Categorical(ALLOYS, graph=graph),
            "temper": carbo.Integer(1, 6),
            "coating": carbo.Categorical(COATINGS),
        }
    )


def wear(params: dict[str, Any]) -> float:
    """The value to be minimised."""
    family, number = params["alloy"].split("-")
    coated = {"none": 0.6, "oil": 0.0, "graphite": 0.2}[params["coating"]]
    return float(FAMILIES[family] + 0.05 * int(number) + 0.2 * abs(params["temper"] - 3) + coated)


def prediction_error(graph: Any) -> float:
    """The mean absolute error for alloys 4 to 6 of each family; alloys 1 to 3 were measured."""
    optimizer = carbo.Optimizer(space(graph), seed=0)
    rng = np.random.default_rng(0)
    for _ in range(60):
        params = {name: rng.choice(variable.choices).item() for name, variable in optimizer.space.variables.items()}
        if int(params["alloy"][-1]) <= 3:
            optimizer.tell(params, wear(params))
    unseen = [{"alloy": alloy, "temper": 3, "coating": "oil"} for alloy in ALLOYS if int(alloy[-1]) > 3]
    means, _ = optimizer.predict(unseen)
    return float(np.mean(np.abs(means - [wear(params) for params in unseen])))


def main() -> None:
    for name, graph in (("without a graph", None), ("families as a graph", alike())):
        print(f"{name:<20} error of predictions for alloys never measured: {prediction_error(graph):.2f}")
    result = carbo.minimize(wear, space(alike()), budget=15, seed=0)
    print(f"best of 15 evaluations: {result.fun:.2f} with {result.x}")


if __name__ == "__main__":
    main()
