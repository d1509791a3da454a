"""Requirements, topology and packing: from pending pods to a plan of nodes."""
