// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// A group's job in passes over kept lines. Needs listmode/kernel.glsl before it.
struct Job {
    ivec4 lines;  // first line, number of lines, their axis
    ivec4 slices; // first slice, and one after the last
};
layout(std430, binding = LR_BIND_LIST_JOBS) readonly buffer Jobs
{
    Job jobs[];
};

// Takes the group's next job. Returns false if no job is left.
bool next_job(out Job job)
{
    uint number = uint(range.x) + gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    if (number >= uint(range.y)) return false;
    job = jobs[number];
    enter_frame(job.lines.z);
    return true;
}
