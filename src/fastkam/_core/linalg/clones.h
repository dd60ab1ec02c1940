/* One function, compiled for several instruction sets, chosen when the module is loaded. */
#ifndef FASTKAM_CLONES_H
#define FASTKAM_CLONES_H

#if defined(FK_CLONES) /* given on the command line, to compile for one only */
#elif defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) \
    && __GNUC__ >= 12
#define FK_CLONES __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define FK_CLONES
#endif

#endif
