"""Cluster components: model replicas, and the driver that connects a process to Ray."""
