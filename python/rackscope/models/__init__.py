"""From what was measured to what was not: one file a model. Pure: plain values, arrays and frames in and out."""
