/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#version 450 core
#include "common/not_there.glsl"
void main()
{
}
