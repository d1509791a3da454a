"""`kerf sweep`: a grid of configurations over many records, each cell one run of the model of `kerf replay`.

`plan` reads the grid, `cell` runs one cell from nothing but a bundle's bytes, `processes` and `cluster` run many,
`results` keeps what is done, `ranking` weighs the configurations. Only `cluster` imports dask, which is the extra
`sweep`.
"""
