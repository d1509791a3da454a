"""A virtual cluster, cloud and clock with fault injection, and the driver that runs turns in virtual time."""
