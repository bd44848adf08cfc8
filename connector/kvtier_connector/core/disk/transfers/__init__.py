"""The transfers between memory and disk: loop.py has the thread that does them, turn by turn.

What the thread and the owner of the index send each other is in messages.py. An order waits, is under way
and is reported in orders.py. submission.py hands it over. completion.py puts it back for its block's next
part, or alone after a joint transfer failed, leaves its block to a worker to check, or ends it. Any order
also ends when the disk is let go of, cleared or closed: reopening_store.py has the store that is served.
"""
