/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "model/scanner/penetration.h"

#include "base/log.h"
#include "model/scanner/layers.h"

#include <string.h>
#include <strings.h>

/* Mass attenuation coefficients at 511 keV after Elam et al. (lr/scanner.h), in cm2/g, times
 * density; those of water (0.0960) and lead at 500 keV (0.1614) agree with NIST's tables. */
static const struct material {
    const char *name;
    double mass_cm2_per_g, density_g_per_cm3;
} materials[] = {{"LSO", 0.11733, 7.40},
                 {"LYSO", 0.11527, 7.10},
                 {"BGO", 0.13504, 7.13},
                 {"GSO", 0.10484, 6.71},
                 {"LaBr3", 0.08851, 5.08}};

static const char assumed_material[] = "LYSO";

double lr_crystal_material_mu_per_mm(const char *material)
{
    for (size_t k = 0; k < sizeof(materials) / sizeof(materials[0]); k++)
        if (strcasecmp(material, materials[k].name) == 0)
            return 0.1 * materials[k].mass_cm2_per_g * materials[k].density_g_per_cm3;
    return 0;
}

const char *lr_crystal_materials(void)
{
    return "LSO, LYSO, BGO, GSO or LaBr3";
}

static double known_mu_per_mm(const lr_scanner *scanner, int module)
{
    const double own = scanner->modules[module].mu_per_mm;
    return own > 0 ? own : scanner->crystal_mu_per_mm;
}

double lr_module_mu_per_mm(const lr_scanner *scanner, int module)
{
    const double known = known_mu_per_mm(scanner, module);
    return known > 0 ? known : lr_crystal_material_mu_per_mm(assumed_material);
}

lr_status lr_penetration_check(const lr_scanner *scanner, lr_mode mode, const lr_log *log)
{
    if (mode == LR_MODE_EXACT) {
        const bool layered = lr_scanner_num_layers(scanner) > 1;
        return lr_error(log, LR_USAGE,
                        "%s integrated along lines and has no exact mode: use mode sampled, with "
                        "more rays for more accuracy%s",
                        layered ? "crystals in layers stop photons along their depth, which is"
                                : "crystal penetration is",
                        layered ? ", or let each layer count as if it were alone" : "");
    }
    return LR_OK;
}

void lr_penetration_warn(const lr_scanner *scanner, const lr_log *log)
{
    bool is_known = true;
    for (int m = 0; m < scanner->num_modules; m++) is_known = is_known && known_mu_per_mm(scanner, m) > 0;
    if (!is_known) {
        lr_warn(log,
                "%s does not say how its crystals attenuate: %s is assumed, %.4g/mm; give "
                "crystal_material (%s) or crystal_mu_per_mm in its file",
                scanner->name, assumed_material, lr_crystal_material_mu_per_mm(assumed_material),
                lr_crystal_materials());
    }
}
