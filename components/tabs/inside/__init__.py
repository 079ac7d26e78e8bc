"""The Inside tab: one picture of the whole machine on real vectors, and all heads at a glance."""
