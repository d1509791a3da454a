"""User data: what an instance is told at boot, in the format of its AMI family. Pure.

Imports the model and the AMI families.
"""
