"""What the samples mean: rates, intervals, intensities, saturation, verdicts. Pure: frames and plain values in and out.

``characterisation.characterise`` is the entry; ``facts`` is what it needs to know, ``findings`` what it returns.
"""
