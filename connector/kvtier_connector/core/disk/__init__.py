"""The disk tier's files: what they hold, and how a reader knows that it may believe them."""
