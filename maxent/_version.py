"""The version, alone, for parts that must not import the whole package."""

__version__ = "0.1.0"
