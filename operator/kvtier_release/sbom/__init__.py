"""Software bills of materials, as CycloneDX: of the distribution, and of what is in an image."""
