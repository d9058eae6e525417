"""Maximum entropy from moments, complete and with hidden variables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from maxent._support.lazy import lazy_exports

if TYPE_CHECKING:
    from maxent.latent.moments import MaxEntResult as MaxEntResult
    from maxent.latent.moments import fit_maxent as fit_maxent

_HOMES = {
    "moments": ("MaxEntResult", "fit_maxent"),
}

__all__, _get, __dir__ = lazy_exports(__name__, _HOMES)


def __getattr__(name: str) -> Any:
    return _get(name)
