"""PISA: Pyramid Top-K Sparse Attention."""

__version__ = "0.1.0"
