"""Boltzmann machines by latent maximum entropy."""

from __future__ import annotations

from maxent._support.lazy import lazy_exports

TYPE_CHECKING = False  # see maxent._support.lazy
_HOMES = {"machines": ("LMEBoltzmannMachine", "LMERBM")}

if TYPE_CHECKING:
    from maxent.latent.boltzmann.machines import (
        LMEBoltzmannMachine as LMEBoltzmannMachine,
    )
    from maxent.latent.boltzmann.machines import LMERBM as LMERBM
else:
    __all__, __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
