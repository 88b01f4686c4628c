"""What all estimators share: reading the input, fitting, mapping points both ways."""
