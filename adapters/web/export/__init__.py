"""`kerf ui --export`: the page of one incident as static files, which a browser opens from disk without a server.

`script` makes one classic script of the page's modules; `answers` asks the API beforehand what the page may ask;
`folder` writes both.

May import what adapters/web may.
"""
