"""What can be bought in EC2: instance types with their labels, capacity and overhead, zones, and prices.

Pure, but for `market`, which asks EC2 and the Pricing API. Imports no other package of the adapter.
"""
