"""What a parameter is made with: attributes, initializers, regularizers."""
