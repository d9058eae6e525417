"""Data in partitions: Dask collections and blocks of rows, cut and checked."""
