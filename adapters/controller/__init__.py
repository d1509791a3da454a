"""Runs turns of the runtime on asyncio: what arrives is collected, turns run one at a time, intents are carried out.
Knows the ports only: the manager gives it a cluster and a cloud.

Imports the engine alone.
"""
