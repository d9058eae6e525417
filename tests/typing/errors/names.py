"""Misspelled names, which type checkers must refuse on the marked lines only."""

from __future__ import annotations

import maxent
import maxent.discrimination
from maxent import MEDClassifer  # error
from maxent.families import Gausian  # error

print(MEDClassifer, Gausian)
print(maxent.MEDRegresor)  # error
print(maxent.discrimination.solve_duel)  # error
