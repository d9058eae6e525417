from Cython.Build import cythonize
from setuptools import Extension, setup

setup(
    name="treesums",
    ext_modules=cythonize([Extension("treesums", ["treesums.pyx"])], language_level=3),
)
