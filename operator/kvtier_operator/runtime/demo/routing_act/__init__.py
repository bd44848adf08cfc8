"""The demo's second act: two engines behind one URL, three ways."""
