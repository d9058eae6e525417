from Cython.Build import cythonize
from setuptools import Extension, setup

setup(
    name="manyduals",
    ext_modules=cythonize(
        [Extension("manyduals", ["manyduals.pyx"])], language_level=3
    ),
)
