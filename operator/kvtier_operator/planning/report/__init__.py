"""The sizing report, for programs and for people."""
