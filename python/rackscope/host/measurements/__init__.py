"""What ``calibrate`` measures, one file a resource. Each returns ceilings or raises CalibrationError."""
