/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_IO_LIGHT_H
#define LR_IO_LIGHT_H

/* Half of the way that light goes in a picosecond: mm of place along a line for each ps between the
 * arrivals at its ends. */
#define LR_MM_PER_PS (0.5 * 0.299792458)

#endif
