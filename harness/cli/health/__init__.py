"""What ``harness doctor`` looks at, one file an area: each yields checks, none raises for a site's faults."""
