"""Answers as Markdown, for comments on pull requests.

A part of the composition root: may import everything.
"""
