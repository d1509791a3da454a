"""From an EC2NodeClass's selectors to its status: subnets, security groups, images, instance profile, reservations,
placement group, and whether EC2 would let kerf launch.

Imports the engine and the AWS adapter.
"""
