"""The numbers of the paper's tables 1 to 4, each of a single run.

Target -> sampler -> (acceptance, distance of the mean, distance of the second moment, ESJD); None
where the paper has none. The fourth table's distance is that of the regression coefficients.
"""

PUBLISHED = {
    "double_banana": {
        "RWM": (0.5189, 7.24, None, 0.78), "aRWM, as released": (0.0776, 0.23, None, 40.2),
        "PT (2), as released": (0.3759, 6.13, None, 0.99),
        "PT (5), as released": (0.4025, 20.92, None, 2.16),
        "MALA": (0.8854, 23.06, None, 0.17), "DM": (0.8350, 2.66, None, 0.80),
        "DM finite, as released": (0.6859, 2.45, None, 0.61),
        "Scout": (0.8341, 1.24, None, 11.1), "Scout finite": (0.7357, 6.17, None, 11.8),
    },
    "basis_vectors": {
        "RWM": (0.3788, 10.03, None, 1.09), "aRWM, as released": (0.2943, 10.03, None, 1.09),
        "PT (2), as released": (0.3763, 2.67, None, 1.47),
        "PT (5), as released": (0.3738, 2.76, None, 2.13),
        "MALA": (0.4935, 9.99, None, 1.81), "DM": (0.7089, 10.09, None, 0.39),
        "DM finite, as released": (0.6972, 10.05, None, 0.39),
        "Scout": (0.7060, 1.01, None, 1.01), "Scout finite": (0.7106, 1.26, None, 1.04),
    },
    "banana_bunch": {
        "RWM": (0.4819, 17.04, 342.9, 1.19), "aRWM, as released": (0.0176, 1.97, 338.0, 14.00),
        "PT (2), as released": (0.4138, 15.01, 377.7, 1.72),
        "PT (5), as released": (0.4288, 11.76, 132.0, 3.54),
        "MALA": (0.0317, 12.62, 576.7, 0.1), "DM": (0.7705, 3.83, 316.7, 0.98),
        "DM finite, as released": (0.5771, 12.05, 334.0, 0.77),
        "Scout": (0.7911, 1.26, 88.5, 13.53), "Scout finite": (0.6334, 2.6, 109.6, 10.99),
    },
    "horseshoe": {
        "RWM": (0.0048, 0.21, None, 1.0e-4), "aRWM, as released": (0.0192, 7.64, None, 1.0e-2),
        "PT (2), as released": (0.0052, 0.2, None, 5.7e-5),
        "PT (10), as released": (0.0045, 0.18, None, 3.8e-5),
        "MALA": (0.9098, 2.12, None, 1.9e-4), "DM": (0.3498, 0.23, None, 2.4e-3),
        "Scout": (0.0551, 0.26, None, 2.1e-2),
    },
}
