"""What the tests of the public doors share: both presets, and settings cheap enough to run hundreds of suggestions."""

from __future__ import annotations

from typing import Any

PRESETS = ("paper", "default")
CHEAP: dict[str, Any] = {
    "samples": 2,
    "burn_in": 5,
    "random_starts": 100,
    "spray_starts": 20,
    "climbers": 3,
    "initial": 5,
    "warp": "none",
}
"""Finding out whether the values ask for a warp takes as long as all the rest: tests where it matters say "auto"."""
