/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#version 450 core
#include "common/numbers.h"
layout(location = 0) out float value;

void main()
{
    value = nonsense; // line 9
}
