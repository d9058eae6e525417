"""Models of language by latent maximum entropy."""

from __future__ import annotations

from maxent._support.lazy import lazy_exports

TYPE_CHECKING = False  # see maxent._support.lazy
_HOMES = {"trigram_topics": ("TrigramTopicModel",)}

if TYPE_CHECKING:
    from maxent.latent.language.trigram_topics import (
        TrigramTopicModel as TrigramTopicModel,
    )
else:
    __all__, __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
