/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What sensitivities tell of voxels: which are seen, and how much. */
#ifndef LR_RECON_SEEN_H
#define LR_RECON_SEEN_H

#include <lr/vector.h>

/* Notes voxels of which a sensitivity of the host's, in floats, is above 0; voxels: [count], those noted before stay so.
 * Returns the sum of the sensitivity, which does not depend on the number of threads. */
double lr_seen_note(const lr_vector *sensitivity, bool *voxels, int threads);

#endif
