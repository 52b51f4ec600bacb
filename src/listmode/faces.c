/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "listmode/faces.h"

#include "base/mem.h"
#include "model/scanner/arrangement.h"

#include <string.h>

/* The grid axis along which every module has one of its own; -1: there is none. */
static int shared_axis(const lr_scanner *scanner)
{
    for (int axis = 2; axis >= 0; axis--) {
        int count = 0;
        while (count < scanner->num_modules && lr_module_axial(&scanner->modules[count], axis) >= 0) count++;
        if (count == scanner->num_modules) return axis;
    }
    return -1;
}

bool lr_listmode_is_leaning(const lr_scanner *scanner)
{
    return shared_axis(scanner) < 0;
}

static struct lr_listmode_module module_of(const lr_module *module, int axis)
{
    struct lr_listmode_module out = {{0}, {0}, {0}};
    const bool is_u = axis >= 0 && lr_module_axial(module, axis) == 0;
    memcpy(out.across, is_u ? module->v : module->u, sizeof(module->u));
    memcpy(out.along, is_u ? module->u : module->v, sizeof(module->u));
    memcpy(out.normal, module->normal, sizeof(module->normal));
    out.across[3] = 0.5 * module->face_mm[is_u ? 1 : 0];
    out.along[3] = 0.5 * module->face_mm[is_u ? 0 : 1];
    return out;
}

struct lr_listmode_module *lr_listmode_modules(const lr_scanner *scanner, const lr_log *log)
{
    const int axis = shared_axis(scanner);
    struct lr_listmode_module *modules = lr_alloc(scanner->num_modules, sizeof(*modules), "modules", log);
    for (int m = 0; modules != NULL && m < scanner->num_modules; m++)
        modules[m] = module_of(&scanner->modules[m], axis);
    return modules;
}
