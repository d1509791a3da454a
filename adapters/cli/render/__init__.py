"""Answers as text for people and as JSON for programs. Renders what replay and projections say; decides nothing."""
