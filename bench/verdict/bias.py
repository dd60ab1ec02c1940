def bias_text(quick): return ""
