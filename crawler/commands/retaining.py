"""How much of the past is kept, from the settings."""

from __future__ import annotations

from math import inf

from freshet.config.settings import Store
from freshet.storage.maintenance import Retention

_DAY_S = 86_400.0


def retention_of(store: Store) -> Retention:
    """What the settings say; 0 stands for all and for ever."""
    return Retention(
        store.bodies_per_page,
        store.body_age_days * _DAY_S,
        _age_s(store.gone_body_age_days),
        store.sketches_per_page or inf,
        _age_s(store.failure_age_days),
        _age_s(store.link_age_days),
        _age_s(store.alert_age_days),
    )


def _age_s(days: float) -> float:
    return days * _DAY_S or inf
