"""The parts of a cluster: the replica of a model, and the driver that connects a process to Ray."""
