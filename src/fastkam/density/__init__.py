"""The user's density: the forms it comes in, and checks of it."""
