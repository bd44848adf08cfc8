"""What this machine and its kernel let a process have."""
