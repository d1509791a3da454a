"""Read models folded from the record: timeline, cost, churn, history and metrics."""
