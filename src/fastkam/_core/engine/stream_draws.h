/* Normals and exponentials from many generators at once: the same draws as draws.h makes. */
#ifndef FASTKAM_STREAM_DRAWS_H
#define FASTKAM_STREAM_DRAWS_H

#include "draws.h"
#include "levels.h"
#include "streams.h"

/* out (n, m): m standard normals from each */
FK_DISPATCH(void, fk_stream_normals,
            (fk_streams * g, const fk_tables *tables, ptrdiff_t m, double *out))

/* out (n,): an exponential from each */
FK_DISPATCH(void, fk_stream_exponentials,
            (fk_streams * g, const fk_tables *tables, double *out))

#endif
