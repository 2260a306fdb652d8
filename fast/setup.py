"""Says how the C file is compiled: once, for this and every later Python."""

from setuptools import Extension, setup

setup(
    ext_modules=[Extension("sealtrace_fast._look", ["src/sealtrace_fast/_look.c"], py_limited_api=True)],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
