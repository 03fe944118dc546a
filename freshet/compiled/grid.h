/* Posteriors of change rates on a grid (grid.c). */

#ifndef FRESHET_GRID_H
#define FRESHET_GRID_H

#include "core.h"

void add_interval(float *sums, double own, double cold, bool changed);
void drift(float *sums, const double *prior, double days);
double mean_rate(const float *sums, const double *prior);
double log_loss(double hazard, bool changed);
bool fit(
    const float *sums, const int64_t *rows, int64_t count,
    double *prior, const double *parent, int64_t steps);

#endif
