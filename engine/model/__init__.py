"""What exists: pods, nodes, NodePools, NodeClasses, instance types, quantities and labels."""
