"""The benchmark: `python -m tests.benchmark`. It compares and asserts nothing about time.

What counts are ratios: the contenders of a row take turns, in one run, on the same data.
"""
