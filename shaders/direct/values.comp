#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// mSRval of one view (paper 1 of lr/direct.h, section 4.1): the values of each kernel on the
// offsets of mSR, divided by their sum.
//
// reads:     offsets; parameters of each kernel
// writes:    mSRval [offset][kernel]
// shape:     one group for each kernel
// invariant: sums are added in a fixed order
#include "common/bindings.h"

layout(local_size_x = LR_DIRECT_GROUP) in;

layout(std140, binding = LR_BIND_PASS) uniform Pass
{
    vec4 tof, radial, axial; // change per voxel along x, y, z. radial: in mm; tof and axial: in units of
                             // the standard deviation
    int num_offsets, num_kernels;
    int num_samples; // samples of a measured profile; 0 = Gaussians
    float first_sample_mm, samples_per_mm;
    float second_width, second_shift; // width 0 = one Gaussian
};
layout(std430, binding = LR_BIND_DIRECT_OFFSETS) readonly buffer Offsets
{
    ivec4 offsets[];
};
// x: standard deviation in mm. y: 1, or -1 if the kernel is mirrored.
layout(std430, binding = LR_BIND_DIRECT_KERNELS) readonly buffer Kernels
{
    vec2 kernels[];
};
layout(std430, binding = LR_BIND_DIRECT_PROFILES) readonly buffer Profiles
{
    float profiles[]; // [kernel][sample]
};
layout(std430, binding = LR_BIND_DIRECT_VALUES) buffer Values
{
    float values[];
};

// Tolerance in steps: an offset that is within this distance of a profile's end belongs to the profile.
const float profile_tie = 1e-4;

shared float partial[LR_DIRECT_GROUP];

float sampled(int kernel, float outward_mm)
{
    float at = (outward_mm - first_sample_mm) * samples_per_mm;
    if (at < -profile_tie || at > float(num_samples - 1) + profile_tie) return 0.0;
    int left = clamp(int(at), 0, num_samples - 2);
    int base = kernel * num_samples + left;
    return mix(profiles[base], profiles[base + 1], at - float(left));
}

float profile(int kernel, float outward_mm)
{
    if (num_samples > 0) return sampled(kernel, outward_mm);
    float first = outward_mm / kernels[kernel].x;
    float sum = exp(-0.5 * first * first);
    if (second_width > 0.0) {
        float second = (first + second_shift) / second_width;
        sum += exp(-0.5 * second * second) / second_width;
    }
    return sum;
}

float value_at(int kernel, vec3 offset)
{
    float along = dot(tof.xyz, offset), up = dot(axial.xyz, offset);
    float outward_mm = kernels[kernel].y * dot(radial.xyz, offset);
    return exp(-0.5 * (along * along + up * up)) * profile(kernel, outward_mm);
}

void main()
{
    int kernel = int(gl_WorkGroupID.x), k = int(gl_LocalInvocationIndex);
    float sum = 0.0;
    for (int i = k; i < num_offsets; i += LR_DIRECT_GROUP) {
        float value = value_at(kernel, vec3(offsets[i].xyz));
        values[i * num_kernels + kernel] = value;
        sum += value;
    }
    partial[k] = sum;
    for (int half_size = LR_DIRECT_GROUP / 2; half_size > 0; half_size /= 2) {
        barrier();
        if (k < half_size) partial[k] += partial[k + half_size];
    }
    barrier();
    float norm = 1.0 / partial[0];
    for (int i = k; i < num_offsets; i += LR_DIRECT_GROUP) values[i * num_kernels + kernel] *= norm;
}
