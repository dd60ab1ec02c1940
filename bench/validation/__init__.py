"""Every sampler and coupling on posteriors of which the exact answers are known."""
