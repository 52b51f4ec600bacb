// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Modules as the viewer's scene reads them. C: struct module_words.
struct Module {
    vec4 centre; // mm; w: crystals along u
    vec4 u;      // w: pitch along u, mm
    vec4 v;      // w: pitch along v, mm
    vec4 normal; // w: first crystal
    vec4 face;   // along u, along v, depth, mm; w: crystals along v
};
layout(std430, binding = 0) readonly buffer Modules {
    Module modules[];
};
