"""A report on the topics of a group, by a PySpark job that reads format `ringleader`.

`python -m ringleader.report --help` says how to run it.
"""
