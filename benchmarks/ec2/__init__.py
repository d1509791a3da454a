"""What `benchmarks/aws.py` measures against: an AWS account on 127.0.0.1, and what kerf does with it."""
