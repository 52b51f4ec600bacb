// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// A group's job in passes over kept lines. Needs listmode/kernel.glsl before it.
struct Job {
    ivec4 lines;  // x: first line; y: number of lines; z: axis of the lines
    ivec4 slices; // x: first slice; y: one after the last slice
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
