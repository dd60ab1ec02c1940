/* Mistakes that each sanitizer must report; otherwise it does not work here. */
#include <pthread.h>
#include <stdlib.h>

static int shared;

static void *count(void *unused)
{
    for (int i = 0; i < 100000; i++) shared++;
    return unused;
}

int beyond_the_end(int n)
{
    char *memory = malloc((size_t)n);
    volatile char *end = memory + n;
    int value = *end;
    free(memory);
    return value;
}

int overflow(int n) { return n + 2147483647; }

long not_a_number(double x) { return (long)x; }

int race(void)
{
    pthread_t other;
    if (pthread_create(&other, 0, count, 0)) return 1;
    count(0);
    return pthread_join(other, 0);
}
