"""From what was measured to what was not: time, throughput and power elsewhere, each with its error.

Pure: frames and plain values in, dataclasses out. One model a file; the models of papers are below ``papers``.
"""
