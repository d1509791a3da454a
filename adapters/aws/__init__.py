"""The AWS provider: EC2, SSM, pricing, IAM, EKS and SQS through boto3. Imports the engine and no other adapter.

`cloud` is the port that the engine asks; `nodeclass/` resolves an EC2NodeClass, `catalogue/` says what can be bought
and for how much, `launch/` starts instances, `userdata/` says what they boot with, `mock/` is AWS in this process.
"""
