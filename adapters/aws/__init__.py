"""EC2, SSM, pricing, IAM and SQS through boto3."""
