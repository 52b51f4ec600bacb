// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// The indices of the values of kept lines. Needs listmode/pass.glsl before it.
layout(std430, binding = LR_BIND_LIST_PLACES) readonly buffer Places
{
    int places[];
};

// Index in the window of the value of the event with this number; -1 = the value is not in the window.
int place_of(int number)
{
    int place = part.z != 0 ? places[number] : number - part.x;
    int within = place - values_at.x;
    return place >= 0 && place < part.y && within >= 0 && within < values_at.y ? within : -1;
}
