"""What the samples mean, by ``characterisation.characterise``. Pure: frames and plain values in and out."""
