"""Properties are tried with the same examples everywhere, however long one takes: ours to break, not chance's or load's.

``pytest --hypothesis-profile default`` looks for new ones.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "same_everywhere", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("same_everywhere")
