/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#version 450 core
flat in uint added;
layout(location = 0) out float value;

void main()
{
    value = float(added);
}
