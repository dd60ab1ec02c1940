"""Other packages: targets that come from them, results that go to them."""
