"""Results for other packages."""
