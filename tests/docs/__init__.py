"""Documents held against the code they speak of."""
