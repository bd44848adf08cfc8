"""What is made of the models: the CRD, its reference, and what a person reads when a field is wrong."""
