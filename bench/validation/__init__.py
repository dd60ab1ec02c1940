"""Every sampler and coupling on posteriors of which the exact moments are known."""
