"""Converting a data set into another encoding: one file for each, cut into shards by size."""
