/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Running a group of tests: see fixtures.h. */
#pragma once

#include "fixtures.h"
