"""From what was measured to what was not, each with its error. Pure: frames and plain values in, dataclasses out."""
