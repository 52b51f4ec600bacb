/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_CPU_ABSORPTION_H
#define LR_CPU_ABSORPTION_H

#include <lr/grid.h>

/* Probability that neither photon is absorbed between y1 and y2: docs/method/common.md,
 * "Attenuation", with K = num_steps midpoints. mu in 1/mm; NULL gives 1. */
double lr_cpu_absorption(const lr_image *mu, int num_steps, const double y1[3], const double y2[3]);

#endif
