/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef NUMBERS_H
#define NUMBERS_H
#define BLOCK_BINDING 0
#define POINTS_BINDING 1
#define SOURCE_UNIT 2
#endif
