"""The tests as processors of several kinds run them.

    python tests/checks/processors.py [Nehalem] [Haswell] [SkylakeX] [words for pytest]

BLAS, NumPy, Numba and our own loops run code that depends on the processor, and with it
the last digits. OpenBLAS is told the kind, NumPy and Numba the features that it lacks.
Our loops are those of this processor, and for the oldest kind a build of the plainest
ones. Kinds that this processor cannot imitate are named and left out. The package is
built from the folder where this starts.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

ARCHITECTURES = """
import numpy, scipy.linalg, threadpoolctl
print(*{i.get("architecture") for i in threadpoolctl.threadpool_info()})
"""


class Kind(NamedTuple):
    """Flags that a processor needs, NumPy's features that it lacks, loops of ours."""

    flags: str
    lacks: str
    plain: bool = False


KINDS = {
    "Nehalem": Kind("ssse3 sse4_1 sse4_2 popcnt", ".*", plain=True),
    "Haswell": Kind("avx2 fma bmi2", "AVX512.*|X86_V4"),
    "SkylakeX": Kind("avx512f avx512cd avx512bw avx512dq avx512vl", "AVX512_(?!SKX).*"),
}


def environment(name):
    """Variables of the system under which libraries take the code of a kind."""
    found = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
    known = [feature for feature in __cpu_dispatch__ if __cpu_features__[feature]]
    lacks = [feature for feature in known if re.fullmatch(KINDS[name].lacks, feature)]
    found |= {"OPENBLAS_CORETYPE": name, "NPY_DISABLE_CPU_FEATURES": " ".join(lacks)}
    if KINDS[name].plain:
        found["NUMBA_CPU_NAME"] = "generic"
    return found


def built(folder, plain):
    """A copy of the folder of sources in another, its extensions compiled in place."""
    copy = shutil.copytree(".", folder)
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace", "--force"]
    variables = {**os.environ, "MAXENT_PLAIN": str(int(plain))}
    subprocess.run(command, cwd=copy, env=variables, check=True, capture_output=True)
    if plain and any(map(chooses, Path(copy, "maxent/_core").rglob("*.so"))):
        sys.exit("the plain build has loops for several processors")
    return copy


def chooses(library):
    """Whether a library chooses among loops when it is loaded."""
    command = ["readelf", "--relocs", "--wide", library]
    return (
        b"IRELATIV" in subprocess.run(command, check=True, capture_output=True).stdout
    )


def tests_pass(name, folder, words):
    """Whether the tests of a folder pass as a processor of a kind runs them."""
    options = {"cwd": folder, "env": environment(name) | {"PYTHONPATH": str(folder)}}
    command = [sys.executable, "-c", ARCHITECTURES]
    said = subprocess.run(command, **options, text=True, stdout=subprocess.PIPE).stdout
    print(f"{name}: OpenBLAS for {said}", end="", flush=True)
    if said.split() != [name]:
        return False
    tests = [sys.executable, "-m", "pytest", "-q", *words]
    return subprocess.run(tests, **options).returncode == 0


def main():
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        sys.exit("needs Linux on x86-64")
    words, names, outcomes, folders = sys.argv[1:], [], [], {}
    while words and words[0] in KINDS:
        names.append(words.pop(0))
    flags = re.search("flags.*", Path("/proc/cpuinfo").read_text())[0].split()
    with tempfile.TemporaryDirectory() as copies:
        for name in names or KINDS:
            plain = KINDS[name].plain
            missing = [flag for flag in KINDS[name].flags.split() if flag not in flags]
            if missing:
                outcomes.append(f"{name} not run, this processor lacks {missing[0]}")
                continue
            if plain not in folders:
                folders[plain] = built(Path(copies, f"plain-{plain}"), plain)
            passed = tests_pass(name, folders[plain], words)
            outcomes.append(f"{name} {'passed' if passed else 'FAILED'}")
    print("; ".join(outcomes))
    return int(any("FAILED" in outcome for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
