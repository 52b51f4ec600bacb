// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// A group's job among lines that are kept. Includers have listmode/kernel.glsl.
struct Job {
    ivec4 lines;  // the first one, how many, their axis
    ivec4 slices; // the first one, and behind the last
};
layout(std430, binding = LR_BIND_LIST_JOBS) readonly buffer Jobs {
    Job jobs[];
};

// Takes the group's next job; false: there are no more.
bool next_job(out Job job)
{
    uint number = uint(range.x) + gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    if (number >= uint(range.y)) {
        return false;
    }
    job = jobs[number];
    enter_frame(job.lines.z);
    return true;
}
