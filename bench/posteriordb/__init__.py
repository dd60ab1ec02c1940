"""The default call on posteriors of posteriordb, against its reference draws."""
