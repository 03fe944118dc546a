/* The clock of one site (site_clock.c). */

#ifndef FRESHET_SITE_CLOCK_H
#define FRESHET_SITE_CLOCK_H

#include "core.h"

int64_t clock_restart(const struct clock *clock, double at, double width);
int64_t clock_sum_from(const struct clock *clock, int64_t first, int64_t stop);

double shared_at(const struct clock *clock, double day);
double cold_at(const struct clock *clock, double day, int64_t area);
double pace_before(const struct clock *clock, double end);

bool crowded(const struct clock *clock, double day);
double dropped_before(const struct clock *clock);
void drop_oldest(const struct clock *clock);
bool ring_is_full(const struct clock *clock);

double suspected(const struct clock *clock, int64_t number);
int64_t expose(
    const struct clock *clock, double begin, double end, double rate, double theta, int64_t area);
int64_t ascribe(
    const struct clock *clock, double begin, double end, double rate, double theta, int64_t area,
    int64_t owner);

double exp_digamma(double x);

#endif
