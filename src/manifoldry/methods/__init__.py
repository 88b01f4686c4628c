"""The methods by name, the choice of one for given data, and what is done to data before it."""
