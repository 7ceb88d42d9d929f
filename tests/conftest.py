"""What holds for all tests: properties are judged, never their speed."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("tabmux", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tabmux")
