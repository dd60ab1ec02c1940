/* The tails of a mixture's components (mixture.h). */
#ifndef FASTKAM_TAILS_H
#define FASTKAM_TAILS_H

#define FK_DEGREES 3      /* degrees of freedom of component 0 */
#define FK_TAIL 0.1       /* t, a share of each other component, ... */
#define FK_TAIL_SCALE 2.0 /* ... which is as wide, relative to the rest of it */

#endif
