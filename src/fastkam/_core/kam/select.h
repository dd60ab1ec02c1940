/* The k-th smallest of n numbers (Hoare's selection); a is permuted. 0 <= k < n, no NaN. */
#ifndef FASTKAM_SELECT_H
#define FASTKAM_SELECT_H

#include <stddef.h>

static inline double fk_select(ptrdiff_t n, ptrdiff_t k, double *a)
{
    ptrdiff_t low = 0, high = n - 1;
    while (low < high) {
        const double pivot = a[low + (high - low) / 2];
        ptrdiff_t i = low, j = high;
        while (i <= j) { /* a[low..j] <= pivot <= a[i..high] when they cross */
            while (a[i] < pivot) i++;
            while (pivot < a[j]) j--;
            if (i <= j) {
                const double swap = a[i];
                a[i++] = a[j];
                a[j--] = swap;
            }
        }
        if (k <= j)
            high = j;
        else if (k >= i)
            low = i;
        else
            break;
    }
    return a[k];
}

#endif
