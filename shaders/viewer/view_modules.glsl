// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Modules as the shaders of the viewer's scene read them. In C this is struct module_words.
struct Module {
    vec4 centre; // mm; w: number of crystals along u
    vec4 u;      // w: pitch along u, mm
    vec4 v;      // w: pitch along v, mm
    vec4 normal; // w: number of the module's first crystal in the scanner
    vec4 face;   // size of a crystal along u, along v and in depth, mm; w: number of crystals along v
};
layout(std430, binding = 0) readonly buffer Modules
{
    Module modules[];
};
