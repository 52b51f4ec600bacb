/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#pragma once
#define BLOCK_BINDING 0
#define POINTS_BINDING 1
#define SOURCE_UNIT 2
