"""The fold: what the entries of a record come to, in `Facts` and in indexes over them.

`evolve` is the way in; `objects` folds watched objects, `nodeclaims` what concerns NodeClaims. Nothing here decides.
Imports the nodeclaim table, the record and the model.
"""
