/* Normals and exponentials of many generators at once: the draws that draws.h makes of each. */
#ifndef FASTKAM_STREAM_DRAWS_H
#define FASTKAM_STREAM_DRAWS_H

#include "draws.h"
#include "levels.h"
#include "streams.h"

/* out (n, m): m standard normals of each */
FK_DISPATCH(void, fk_stream_normals,
            (fk_streams * g, const fk_tables *tables, ptrdiff_t m, double *out))

/* out (n,): an exponential of each */
FK_DISPATCH(void, fk_stream_exponentials,
            (fk_streams * g, const fk_tables *tables, double *out))

#endif
