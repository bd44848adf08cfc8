"""The disk tier's folder and the files in it."""
