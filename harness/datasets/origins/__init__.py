"""Where the images of made data sets come from: one file for each origin."""
