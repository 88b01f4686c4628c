"""How many examples hypothesis draws: few and the same ones in CI, many and new ones by hand."""

import os

from hypothesis import HealthCheck, settings

COMMON = {
    "deadline": None,  # the first fit compiles
    "database": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.filter_too_much],
}
settings.register_profile("ci", derandomize=True, max_examples=25, **COMMON)
settings.register_profile("long", max_examples=2000, print_blob=True, **COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
