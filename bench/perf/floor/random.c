/* The floor of random numbers: any generator and any method that fills vectors. Eight xoshiro256++
 * streams side by side; normals by Box and Muller, exponentials by the logarithm. */
#include "vec.h"

typedef uint64_t uvec __attribute__((vector_size(64)));
typedef struct { uvec s[4]; } streams;

INLINE uvec rotate(uvec x, int k) { return x << k | x >> (64 - k); }

INLINE uvec next(streams *g)
{
    const uvec out = rotate(g->s[0] + g->s[3], 23) + g->s[0], t = g->s[1] << 17;
    g->s[2] ^= g->s[0];
    g->s[3] ^= g->s[1];
    g->s[1] ^= g->s[2];
    g->s[0] ^= g->s[3];
    g->s[2] ^= t;
    g->s[3] = rotate(g->s[3], 45);
    return out;
}

/* in [1, 2) */
INLINE vec one_to_two(streams *g)
{
    const uvec bits = next(g) >> 12 | UINT64_C(0x3ff0000000000000);
    return (vec)bits;
}

/* log(2 - u), u in [1, 2): in (-36.8, 0] */
INLINE vec minus_log(vec u)
{
    const vec x = 2.0 - u;
    const ivec bits = (ivec)x, high = (bits - INT64_C(0x3fe6a09e667f3bcd)) >> 52;
    const vec m = (vec)(bits - (high << 52)), s = (m - 1.0) / (m + 1.0), z = s * s;
    vec p = z * (2.0 / 17) + 2.0 / 15;
    p = p * z + 2.0 / 13;
    p = p * z + 2.0 / 11;
    p = p * z + 2.0 / 9;
    p = p * z + 2.0 / 7;
    p = p * z + 2.0 / 5;
    p = p * z + 2.0 / 3;
    p = p * z + 2.0;
    const vec k = __builtin_convertvector(high, vec);
    return -(k * 0.6931471805599453 + s * p);
}

/* sin and cos of 2 pi u, u in [1, 2), by their series on an eighth of the circle */
INLINE void turn(vec u, vec *sine, vec *cosine)
{
    const vec t = u - 1.0, shift = splat(0x1.8p52), q = t * 4.0 + shift;
    const ivec quarter = (ivec)q;
    const vec x = (t * 4.0 - (q - shift)) * 1.5707963267948966, z = x * x;
    vec s = z * -7.647163731819816e-13 + 1.6059043836821613e-10;
    s = s * z + -2.505210838544172e-08;
    s = s * z + 2.7557319223985893e-06;
    s = s * z + -0.0001984126984126984;
    s = s * z + 0.008333333333333333;
    s = s * z + -0.16666666666666666;
    s = s * z * x + x;
    vec c = z * 4.779477332387385e-14 + -1.1470745597729725e-11;
    c = c * z + 2.08767569878681e-09;
    c = c * z + -2.755731922398589e-07;
    c = c * z + 2.48015873015873e-05;
    c = c * z + -0.001388888888888889;
    c = c * z + 0.041666666666666664;
    c = c * z + -0.5;
    c = c * z + 1.0;
    const ivec odd = -(quarter & 1), minus_s = (quarter & 2) << 62, minus_c = ((quarter + 1) & 2) << 62;
    *sine = (vec)(((odd & (ivec)c) | (~odd & (ivec)s)) ^ minus_s);
    *cosine = (vec)(((odd & (ivec)s) | (~odd & (ivec)c)) ^ minus_c);
}

/* n is a multiple of 16 */
void floor_random(ptrdiff_t kind, ptrdiff_t times, ptrdiff_t n, uint64_t *state, double *out)
{
    streams g;
    memcpy(&g, state, sizeof g);
    for (ptrdiff_t i = 0; i < times; i++)
        for (ptrdiff_t j = 0; j < n; j += 16) {
            if (kind == 0) {
                vec s, c, r = minus_log(one_to_two(&g)) * 2.0;
                for (int l = 0; l < 8; l++) r[l] = sqrt(r[l]);
                turn(one_to_two(&g), &s, &c);
                store(out + j, r * s);
                store(out + j + 8, r * c);
            } else
                for (int h = 0; h < 16; h += 8) {
                    const vec u = one_to_two(&g);
                    if (kind == 1)
                        store(out + j + h, u - 1.0);
                    else
                        store(out + j + h, minus_log(u));
                }
        }
    memcpy(state, &g, sizeof g);
}
