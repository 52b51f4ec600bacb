/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
float half_of(float x)
{
    return 0.5 * missing_number; // line 5
}
