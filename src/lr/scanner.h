/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_SCANNER_H
#define LR_SCANNER_H

#include <lr/log.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A scanner is a list of flat modules.
 *
 * Frame: right-handed, millimetres, z along the scanner's axis, origin at its centre.
 *
 * A module is a rectangle of crystals[0] x crystals[1] equal cells. Cells repeat every pitch_mm[0] along u
 * (transaxial), and every pitch_mm[1] along v (axial). Each cell has one crystal face of size face_mm at its centre.
 * The gaps between faces detect nothing. Crystal (p, q) is cell p along u and q along v, both counted from 0 on the
 * negative side; its number within the module is q * crystals[0] + p.
 *
 * A panel made of blocks with wider gaps between them is described as several modules with the same `position` and
 * `ring`. In a uniform module every backend finds the crystal of a hit by one division, and exact elements have a
 * closed form.
 *
 * Crystals in several layers are described by one module per layer. Each layer has its own front face and a
 * detection plane behind it. Modules of one `block` but of different layers are never in coincidence. Each layer can
 * stop photons that passed the other layers (lr_operator_params, penetration). */
typedef struct lr_module {
    double centre_mm[3];    /* centre of the front face (of the pitch rectangle) */
    double u[3];            /* unit axis, transaxial */
    double v[3];            /* unit axis, axial, orthogonal to u */
    double normal[3];       /* inward unit vector, u x v or its opposite; set by lr_scanner_create */
    int crystals[2];        /* number along u and along v */
    double pitch_mm[2];     /* along u and v */
    double face_mm[2];      /* along u and v, at most the pitch */
    double depth_mm;        /* length of the crystals, which extend backwards from the front face */
    double mu_per_mm;       /* attenuation of its crystals at 511 keV; 0 = the scanner's */
    int position;           /* place around the ring, 0 .. num_positions-1; 0 in explicit lists */
    int ring;               /* module ring; 0 in explicit lists */
    int first_crystal_ring; /* number of the crystal ring of q = 0, counted over all module rings and blocks of the
                               layer */
    int layer;              /* 0 = in front, or alone; below LR_MAX_LAYERS */
    int block;              /* number of the block, from 1, equal for all its layers; 0 = no layers */
} lr_module;

enum { LR_MAX_LAYERS = 16 };

/* A layer of crystals in a module. Zero fields take the module's values. */
typedef struct lr_layer {
    double front_mm; /* distance of the layer's front face behind the module's; 0 = the layer begins where the layer
                        before it ends */
    double depth_mm;
    const int *block_crystals[2]; /* [blocks] along u and v; NULL = as the module's */
    double pitch_mm[2], face_mm[2];
    double offset_mm[2]; /* offset of the layer's centre from the module's centre, along u and v */
    double mu_per_mm;    /* attenuation of the layer's crystals */
} lr_layer;

/* Rules for LORs that are measured. Zero (or false) turns a rule off. A LOR is in coincidence if it obeys all rules
 * that are on; see lr_lors. */
typedef struct lr_coincidence {
    double field_of_view_mm;     /* diameter of the field of view: the line through the crystals' centres must pass the
                                    z axis at no more than half this diameter */
    int min_module_difference;   /* smallest difference of the modules' positions around the ring */
    bool limits_ring_difference; /* true if the next field is used */
    int max_ring_difference;     /* largest difference of crystal rings */
} lr_coincidence;

/* A scanner, made by lr_scanner_create, lr_scanner_create_ring or the readers of lr/io.h, and never changed afterwards.
 * A scanner has at least two modules, unit orthogonal axes, positive sizes, face <= pitch and inward normals. Front
 * faces or crystal boxes of two modules overlap by at most 1e-6 mm. */
typedef struct lr_scanner {
    char *name;
    int num_modules;
    lr_module *modules; /* [num_modules] */
    int *first_crystal; /* [num_modules + 1]: number of crystals in all modules before this one */
    int num_crystals;
    int num_positions; /* modules around the ring; 0 for an explicit list */
    lr_coincidence coincidence;
    double detection_depth_mm; /* depth of the detection plane behind the front face */
    double tof_resolution_ps;  /* FWHM; 0 = no time of flight */
    double crystal_mu_per_mm;  /* attenuation of the crystals at 511 keV; 0 = not known */
    char *source;              /* source of the numbers, and which of them are unverified; may be NULL */
    int *castor_order;         /* [num_crystals] the crystal for each CASToR number, if the scanner was read from a
                                  CASToR file; NULL = the numbering of CASToR files that this library writes */
} lr_scanner;

/* All properties of a scanner; zero fields are defaults. */
typedef struct lr_scanner_params {
    const char *name;         /* NULL = "unnamed scanner" */
    const lr_module *modules; /* copied; normals are computed */
    int num_modules;
    int num_positions; /* 0 = explicit list: of the rules, only field_of_view_mm may be given */
    lr_coincidence coincidence;
    double detection_depth_mm;
    double tof_resolution_ps;
    double crystal_mu_per_mm; /* 0 = not known */
    const char *source;
    const lr_log *log;
} lr_scanner_params;

/* Attenuation of a crystal material at 511 keV, 1/mm, including coherent scatter; 0 = unknown material. Materials
 * (upper or lower case) and their densities in g/cm3: LSO 0.0868 (7.40), LYSO 0.0818 (Lu1.8Y0.2SiO5, 7.10), BGO 0.0963
 * (7.13), GSO 0.0703 (6.71), LaBr3 0.0450 (5.08). Source: Elam, Ravel and Sieber, A new atomic database for X-ray
 * spectroscopic calculations, Radiat. Phys. Chem. 63 (2002) 121, times density. */
LR_API double lr_crystal_material_mu_per_mm(const char *material);

/* Names of these materials for messages: "LSO, LYSO, BGO, GSO or LaBr3". */
LR_API const char *lr_crystal_materials(void);

/* A ring-shaped scanner. The centre of panel k is at the angle first_angle_deg + k * 360 / modules, counted from +x
 * towards +y, at radius_mm from the axis; u points towards increasing angle, v along +z. Rings are centred in z. Panel
 * k of a ring has the panel index ring * modules + k. A panel of B blocks gives B modules, with the indices panel * B +
 * (block_v * blocks_u + block_u). A block of L layers gives L modules instead of one, front to back. */
typedef struct lr_ring {
    double radius_mm; /* distance from the axis to the centres of the front faces */
    int modules;      /* panels around the ring */
    double first_angle_deg;
    int rings; /* number of module rings; 0 counts as 1 */
    double ring_pitch_mm;
    int blocks[2];                /* blocks per panel along u and v; 0 = 1 */
    const int *block_crystals[2]; /* [blocks] crystals of each block along u and v */
    double block_gap_mm[2];       /* gap between neighbouring blocks, in addition to the pitch */
    double pitch_mm[2], face_mm[2], depth_mm;
    const lr_layer *layers; /* [num_layers] front to back, within depth_mm */
    int num_layers;         /* 0 = one layer of depth depth_mm */
} lr_ring;

/* Checks the geometry and builds a scanner.
 * errors: NULL; the log says which modules are wrong, by how much, and the remedy. */
LR_SIZED(lr_scanner_params, lr_scanner *, lr_scanner_create, (const lr_scanner_params *params), (params));

/* Builds a ring scanner; params->modules and num_positions are ignored and made from the ring. */
LR_SIZED(lr_scanner_params, lr_scanner *, lr_scanner_create_ring,
         (const lr_scanner_params *params, const lr_ring *ring), (params, ring));

/* Destroying NULL is allowed. */
LR_API void lr_scanner_destroy(lr_scanner *scanner);

/* The module of a crystal, given by its number over the whole scanner:
 * first_crystal[module] + q * crystals[0] + p. */
LR_API int lr_scanner_module_of(const lr_scanner *scanner, int crystal);

/* The centre of crystal (p, q)'s volume, half of its depth behind the front face. Crystal maps of other programs list
 * these centres, and the coincidence rules use them. */
LR_API void lr_module_crystal_centre(const lr_module *module, int p, int q, double centre_mm[3]);

/* Centre of the volume of a crystal given by its number over the whole scanner. */
LR_API void lr_scanner_crystal_centre(const lr_scanner *scanner, int crystal, double centre_mm[3]);

/* Centre of a crystal on the detection plane, at which its hits are recorded. The crystal is given by its number over
 * the whole scanner. */
LR_API void lr_scanner_hit_centre(const lr_scanner *scanner, int crystal, double centre_mm[3]);

/* The centres of all crystals' volumes, and of all crystals on the detection plane, in the order of their numbers.
 * centres_mm: [num_crystals]. A crystal has the axes of its module (lr_module). */
LR_API void lr_scanner_crystal_centres(const lr_scanner *scanner, double (*centres_mm)[3]);
LR_API void lr_scanner_hit_centres(const lr_scanner *scanner, double (*centres_mm)[3]);

/* Centre of the module's pitch rectangle on the detection plane. */
LR_API void lr_scanner_detection_centre(const lr_scanner *scanner, int module, double centre_mm[3]);

#ifdef __cplusplus
}
#endif

#endif
