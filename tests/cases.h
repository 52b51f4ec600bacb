/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Running a group of tests: see fixtures.h. */
#ifndef LR_TEST_CASES_H
#define LR_TEST_CASES_H

#include "fixtures.h"

#endif
