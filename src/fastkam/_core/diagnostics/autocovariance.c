/* The loops of autocovariance.h. */
#include "autocovariance.h"
#include "vector.h"

#define CACHED 4096 /* points of a transform whose passes stay in the cache */

FK_INLINE fk_kinds splat(double a) { return (fk_kinds){a, a, a, a}; }

/* one pass of the forward transform: butterflies over n points, w the roots of unity of n */
FK_INLINE void pass(ptrdiff_t n, ptrdiff_t stride, const double *w, fk_wave *a)
{
    for (ptrdiff_t j = 0; j < n / 2; j++) {
        const double c = w[2 * j * stride], s = w[2 * j * stride + 1];
        const fk_wave u = a[j], v = a[j + n / 2];
        const fk_kinds re = u.re - v.re, im = u.im - v.im;
        a[j].re = u.re + v.re;
        a[j].im = u.im + v.im;
        a[j + n / 2].re = fk_fma_quad(re, splat(c), -(im * s));
        a[j + n / 2].im = fk_fma_quad(re, splat(s), im * c);
    }
}

/* w: cos and -sin of 2 pi k / (n stride), k < n stride / 2 */
static void forward(ptrdiff_t n, ptrdiff_t stride, const double *w, fk_wave *a)
{
    if (n > CACHED) {
        pass(n, stride, w, a);
        forward(n / 2, 2 * stride, w, a);
        forward(n / 2, 2 * stride, w, a + n / 2);
        return;
    }
    for (ptrdiff_t m = n; m > 1; m /= 2, stride *= 2)
        for (ptrdiff_t i = 0; i < n; i += m) pass(m, stride, w, a + i);
}

/* draw i of a half in each kind of series, less the mean */
static inline void draw(const fk_halves *h, int half, ptrdiff_t i, fk_kinds *kinds)
{
    const double z = h->z[half * h->n + i], x = h->x[half * h->n + i];
    *kinds = (fk_kinds){z, x, x <= h->low, x <= h->high} - h->mean[half];
}

/* s += |F x_b|^2 + (+-) conj(F x_(b-1)) F x_b, with `before` = F x_(b-1) */
static void add_spectrum(ptrdiff_t n, const fk_wave *before, const fk_wave *a, fk_wave *s)
{
    for (ptrdiff_t k = 0; k < n; k++) {
        const fk_wave u = a[k];
        s[k].re += u.re * u.re + u.im * u.im;
        if (!before) continue;
        const fk_wave v = before[k];
        const fk_kinds re = v.re * u.re + v.im * u.im, im = v.re * u.im - v.im * u.re;
        s[k].re += k < n / 2 ? re : -re;
        s[k].im += k < n / 2 ? im : -im;
    }
}

void FK_LEVEL(fk_add_chain)(ptrdiff_t B, const double *w, const fk_halves *h, fk_wave *work,
                            fk_wave *s)
{
    fk_wave *a = work, *before = work + 2 * B;
    const fk_wave none = {{0}, {0}};
    for (ptrdiff_t start = 0; start < h->n; start += B) {
        for (ptrdiff_t i = 0; i < 2 * B; i++) {
            a[i] = none;
            if (i < B && start + i < h->n) {
                draw(h, 0, start + i, &a[i].re);
                draw(h, 1, start + i, &a[i].im);
            }
        }
        forward(2 * B, 1, w, a);
        add_spectrum(2 * B, start ? before : NULL, a, s);
        fk_wave *const swapped = a;
        a = before;
        before = swapped;
    }
}

void FK_LEVEL(fk_backward)(ptrdiff_t n, const double *w, fk_wave *a)
{
    for (ptrdiff_t m = 2, stride = n / 2; m <= n; m *= 2, stride /= 2)
        for (ptrdiff_t i = 0; i < n; i += m)
            for (ptrdiff_t j = i; j < i + m / 2; j++) {
                const double c = w[2 * (j - i) * stride], s = -w[2 * (j - i) * stride + 1];
                const fk_wave u = a[j], v = a[j + m / 2];
                const fk_kinds re = fk_fma_quad(v.re, splat(c), -(v.im * s));
                const fk_kinds im = fk_fma_quad(v.re, splat(s), v.im * c);
                a[j].re = u.re + re;
                a[j].im = u.im + im;
                a[j + m / 2].re = u.re - re;
                a[j + m / 2].im = u.im - im;
            }
}
