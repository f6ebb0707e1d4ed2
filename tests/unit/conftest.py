"""Properties are tried with the same examples everywhere, and however long one takes: chance and load decide nothing.

``pytest tests/unit --hypothesis-profile default`` looks for new ones.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "same_everywhere", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("same_everywhere")
