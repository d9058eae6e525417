"""Compiled parts of maxent: one table of extensions and the OpenMP probe.

Everything else lives in pyproject.toml.  MAXENT_OPENMP=0 builds without OpenMP;
MAXENT_BOUNDSCHECK=1 builds kernels that check every index (a debugging aid);
MAXENT_PLAIN=1 builds every loop for the plainest processor only;
MAXENT_CFLAGS adds compiler flags (sanitizers), and keeps the symbols and the functions
that are not called, which builds on Linux strip otherwise: they are more than four
fifths of the installed size.
"""

import copy
import os
import re
import shlex
import sys
import tempfile
import tomllib
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools._distutils.ccompiler import new_compiler
from setuptools._distutils.sysconfig import customize_compiler
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError, LinkError

CORE = "maxent/_core/"
SHARED = "maxent._core._cyutility"  # Cython's memoryview code, once for all modules
RBF_LOOPS = CORE + "machines/rbf_loops.c"

# path below _core -> extra C sources
EXTENSIONS = {
    "potentials": [RBF_LOOPS],
    "threads": [],
    "machines/gram": [RBF_LOOPS],
    "tall_matrices": [CORE + "tall_loops.c"],
    "machines/signed_rows": [RBF_LOOPS],
    "machines/uncertain_labels": [],
    "machines/dual_machine": [RBF_LOOPS],
    "machines/smo": [RBF_LOOPS],
    "machines/pair_votes": [CORE + "machines/pair_loops.c"],
    "machines/class_pairs": [RBF_LOOPS],
    "machines/coordinate": [],
    "machines/multiclass": [RBF_LOOPS],
    "trees/triangles": [RBF_LOOPS],
    "trees/maximum_tree": [],
    "trees/star_mesh_elimination": [],
    "trees/star_mesh": [RBF_LOOPS],
    "trees/laplacian": [RBF_LOOPS],
    "trees/tree_covariance": [],
    "trees/tree_sampling": [RBF_LOOPS],
    "trees/column_groups": [],
    "trees/letter_bits": [RBF_LOOPS],
    "trees/tables": [],
    "trees/tree_tables": [],
    "normal_wishart": [],
    "systems/statespace": [],
    "systems/expected_states": [],
    "systems/system_scores": [],
    "systems/system_pairs": [CORE + "systems/pair_filter.c"],
    "chains/chain": [RBF_LOOPS, CORE + "chains/chain_loops.c"],
    "chains/chain_em": [CORE + "chains/chain_loops.c"],
    "chains/chain_pairs": [RBF_LOOPS, CORE + "chains/kernel_loops.c"],
    "clusters": [RBF_LOOPS],
    "mixture": [RBF_LOOPS],
    "machines/sparse_gram": [],
    "entropies": [RBF_LOOPS],
    "softmax": [RBF_LOOPS],
    "latent_trees": [],
    "margin_ascent": [],
    "motifs": [],
    "text_tables": [],
    "fasta": [],
}

# No -ffast-math: reassociation would cancel the rounding constant inside exp.
CFLAGS = (
    ["/O2", "/std:c11"]
    if sys.platform == "win32"
    else ["-O3", "-fno-math-errno", "-fno-trapping-math"]
)


def openmp_flags():
    """Flags under which a small OpenMP program compiles and links, or none."""
    if os.environ.get("MAXENT_OPENMP", "1") == "0":
        return [], []
    candidates = {
        "win32": [(["/openmp"], [])],
        "darwin": [(["-Xpreprocessor", "-fopenmp"], ["-lomp"])],
    }.get(sys.platform, [(["-fopenmp"], ["-fopenmp"])])
    compiler = new_compiler()
    customize_compiler(compiler)
    source = "#include <omp.h>\nint main(void){return omp_get_max_threads() < 1;}\n"
    for compile_args, link_args in candidates:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "probe.c"
            path.write_text(source)
            try:
                objects = compiler.compile(
                    [str(path)], output_dir=folder, extra_postargs=compile_args
                )
                compiler.link_executable(
                    objects, str(Path(folder) / "probe"), extra_postargs=link_args
                )
            except (CompileError, LinkError):
                continue
            return compile_args, link_args
    return [], []


def readme():
    """README.md, whose links to files lead to the source once that has its address."""
    text = Path("README.md").read_text(encoding="utf-8")
    metadata = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))
    source = metadata["project"]["urls"]["Source"]
    if "example.org" in source:
        return text
    links = re.compile(r"(!?)(\[[^\]]*\])\((?!https?:|#)([^)]+)\)")

    def absolute(match):
        kind = "raw" if match[1] else "blob"
        return f"{match[1]}{match[2]}({source}/{kind}/HEAD/{match[3]})"

    return links.sub(absolute, text)


class BuildExtensions(build_ext):
    """Each extension in a temporary folder of its own.

    Several compile the same C file, at the same time: in one folder a module may be
    linked with an object file that another is about to write.
    """

    def build_extension(self, ext):
        own = copy.copy(self)
        own.build_temp = os.path.join(self.build_temp, ext.name)
        super(BuildExtensions, own).build_extension(ext)


def main():
    compile_args, link_args = openmp_flags()
    extra = shlex.split(os.environ.get("MAXENT_CFLAGS", ""))
    sections, small = [], []
    if sys.platform == "linux" and not extra:
        # functions of shared C files that a module does not call are left out of it
        sections = ["-ffunction-sections"]
        exports = f"-Wl,--version-script={Path(CORE, 'exports.map').resolve()}"
        small = ["-Wl,--gc-sections", exports, "-Wl,--strip-all"]
    check = os.environ.get("MAXENT_BOUNDSCHECK", "0") == "1"
    plain = os.environ.get("MAXENT_PLAIN", "0") == "1"
    flags = {
        "define_macros": [("MAXENT_NO_CLONES", None)] if plain else [],
        "extra_compile_args": CFLAGS + compile_args + sections + extra,
        "extra_link_args": link_args + small + extra,
    }
    extensions = [Extension(SHARED, [f"{CORE}_cyutility.c"], **flags)]
    extensions += [
        Extension(
            f"maxent._core.{name.replace('/', '.')}",
            [f"{CORE}{name}.pyx", *sources],
            include_dirs=[CORE],
            depends=[
                CORE + "machines/rbf_loops.h",
                CORE + "dispatch.h",
                CORE + "sizes.h",
                CORE + "decimals.h",
                *(source.removesuffix("c") + "h" for source in sources),
                CORE + "systems/pair_filter.h",
                CORE + "lanes.h",
                CORE + "chains/chain_loops.h",
                CORE + "potentials.pxd",
                CORE + "uniform_exponential.pxd",
            ],
            **flags,
        )
        for name, sources in EXTENSIONS.items()
    ]
    setup(
        long_description=readme(),
        long_description_content_type="text/markdown",
        cmdclass={"build_ext": BuildExtensions},
        options={"build_ext": {"parallel": True}},  # a compiler for each core
        ext_modules=cythonize(
            extensions,
            nthreads=0,
            shared_utility_qualified_name=SHARED,
            compiler_directives={
                "language_level": 3,
                "boundscheck": check,
                "wraparound": False,
                "initializedcheck": check,
                "cdivision": True,
                "embedsignature": True,
                "freethreading_compatible": True,
            },
        ),
    )


if __name__ == "__main__":
    main()
