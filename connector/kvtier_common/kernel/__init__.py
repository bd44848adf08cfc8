"""What Linux lets this process have."""
