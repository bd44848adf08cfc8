"""One probe a file: looks at this machine or container and gives a check its facts."""
