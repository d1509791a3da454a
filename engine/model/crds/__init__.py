"""The API of kerf's objects, declared once: as CustomResourceDefinitions, and as what is checked offline.

Imports the model alone.
"""
