"""PySpark jobs over the topics of a group."""
