"""A known constraint: a plain function says which points are permitted. No other point is ever suggested. Some seconds.

Choose sensors for a satellite: at most 4 kg and 20 W, and the two cameras share one port.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import carbo

#            kg    W   worth
SENSORS = {
    "wide_camera": (1.1, 6, 7.0),
    "zoom_camera": (1.6, 9, 9.0),
    "infrared": (0.9, 5, 6.0),
    "magnetometer": (0.3, 1, 2.0),
    "spectrometer": (1.4, 8, 8.0),
    "dosimeter": (0.2, 1, 1.5),
    "star_tracker": (0.6, 3, 4.0),
    "radio": (0.5, 4, 3.0),
}


def permitted(params: dict[str, Any]) -> bool:
    weight = sum(kilos for name, (kilos, _, _) in SENSORS.items() if params[name])
    power = sum(watts for name, (_, watts, _) in SENSORS.items() if params[name])
    cameras = params["wide_camera"] and params["zoom_camera"]
    return weight <= 4.0 and power * params["duty"] <= 20 and not cameras


SPACE = carbo.Space(
    {name: carbo.Binary() for name in SENSORS} | {"duty": carbo.Ordinal([0.5, 0.75, 1.0])},
    constraint=permitted,
)


def cost(params: dict[str, Any]) -> float:
    """Less is better. Some pairs of sensors are worth more together than apart, which the search has to find out."""
    worth = sum(value for name, (_, _, value) in SENSORS.items() if params[name])
    worth += 3.0 * (params["infrared"] and params["spectrometer"]) + 2.0 * (params["radio"] and params["dosimeter"])
    return float(-worth * params["duty"])


def main() -> None:
    result = carbo.minimize(cost, SPACE, budget=25, seed=0)
    assert all(permitted(params) for params in result.x_iters)
    chosen = [name for name in SENSORS if result.x[name]]
    names, choices = list(SPACE.variables), [variable.choices for variable in SPACE.variables.values()]
    allowed = [params for values in product(*choices) if permitted(params := dict(zip(names, values, strict=True)))]
    best = min(map(cost, allowed))
    print(f"worth {-result.fun:.2f} at duty {result.x['duty']}: {', '.join(chosen)}")
    print(f"{len(allowed)} of {SPACE.cardinality} combinations are permitted; the best of them is worth {-best:.2f}")


if __name__ == "__main__":
    main()
