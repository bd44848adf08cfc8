"""What is in a release's folder, a kind of file each."""
