"""An interrupt amid Numba's imports or compilations leaves no broken process behind."""

import threading

import processes
import pytest

from maxent._support.compiling import _apart, imported

FIT = """
import _thread, sys
import numpy as np
from maxent.latent import fit_maxent

def fit():
    return fit_maxent(np.arange(6.0)[:, None], [2.0], method="iis", tol=1e-6)

def interrupted():
    try:
        fit()
    except KeyboardInterrupt:
        return True
"""
# the main thread is interrupted as soon as a module is looked for
IMPORT = """
class Interrupting:
    asked = False

    def find_spec(self, name, *_):
        if name == {module!r} and not self.asked:
            self.asked = True
            _thread.interrupt_main()

sys.meta_path.insert(0, Interrupting())
assert interrupted()
assert fit().converged
"""
# or as soon as LLVM hands over the code of a function of ours
COMPILE = """
from numba.core.codegen import CPUCodeLibrary

hook, asked = CPUCodeLibrary._object_compiled_hook.__func__, []

def interrupting(cls, module, code):
    library = module.__dict__.get("_CPUCodeLibrary__library")
    if getattr(library, "name", None) == "_log_sum" and not asked:
        asked.append(True)
        _thread.interrupt_main()
    return hook(cls, module, code)

CPUCodeLibrary._object_compiled_hook = classmethod(interrupting)
interrupted()  # unless the names in Numba are others
assert fit().converged
"""


@pytest.mark.parametrize(
    "module",
    [
        "numba.core.types.misc",
        pytest.param("numba.np.ufunc", marks=pytest.mark.slow),
        "maxent._core.compiled_by_numba.iterative_scaling",
    ],
)
def test_an_interrupt_of_an_import_is_answered_and_leaves_it_whole(module):
    processes.run("-c", FIT + IMPORT.format(module=module))


def test_an_interrupt_of_a_compilation_is_answered_and_leaves_it_whole(tmp_path):
    env = {"NUMBA_CACHE_DIR": str(tmp_path)}
    processes.run("-c", FIT + COMPILE, env=env)


def test_what_is_called_apart_returns_and_raises_as_here():
    assert _apart(lambda *args, **kwargs: (args, kwargs), 1, b=2) == ((1,), {"b": 2})
    assert _apart(threading.get_ident) != threading.get_ident()
    with pytest.raises(ImportError, match=r"A test needs Numba.*no_such_module"):
        imported("no_such_module", "a test")
