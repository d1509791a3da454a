"""The tables of `kerf sql` and `kerf export`: a record as rows, with each column's type, unit and meaning.

`columns` says what a column is, `rows` declares the tables. The other modules fold the rows that no figure has;
`record_tables` puts all together.

Imports the engine and other projections.
"""
