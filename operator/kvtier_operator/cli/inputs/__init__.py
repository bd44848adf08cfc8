"""What commands read: options, resources and policies from files, models, this machine and a namespace."""
