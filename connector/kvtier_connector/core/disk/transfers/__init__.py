"""The transfers between memory and disk: loop.py has the thread that does them, turn by turn.

What the thread and the owner of the index send each other is in messages.py. Where an order is, and which
module moves it on:

    waiting    orders.py: the disk takes no more, or writes give way to reads
    under way  submission.py hands it over; orders.py says which transfer is whose
    continued  completion.py puts it back: for its block's next part, or alone after a joint transfer failed
    unchecked  outbox.py: its block is all there, and a worker checks it
    ended      completion.py has checked its block or put it down; outbox.py reports it

Any order also ends when the disk is let go of, cleared or closed. reopening_store.py has the store that is
served, and says when it is let go of; completion.py keeps its journal short.
"""
