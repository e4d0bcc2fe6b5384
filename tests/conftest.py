"""Settings all tests share."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("carbo", derandomize=True, deadline=None)
settings.load_profile("carbo")
