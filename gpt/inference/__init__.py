"""Running a model fast and for several visitors at once: engine, admission, packed weights, threads."""
