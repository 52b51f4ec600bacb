/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Keys of STIR's headers of projection data, as InterfileHeader.cxx of STIR 6.2 has them. A header is read for its
 * scanner or for its counts; each leaves what the other asks for to it. */
#include "io/scanners/scanner_formats.h"

/* Idle keys follow from the others, or say how data are binned. */
static const struct lr_known_key scanner_keys[] = {
    {LR_KEY_READ,
     "scanner type|originating system|number of rings|number of detectors per ring|"
     "inner ring diameter (cm)|average depth of interaction (cm)|distance between rings (cm)|"
     "view offset (degrees)|number of detector layers|maximum number of non-arc-corrected bins|"
     "number of crystals per block in transaxial direction|"
     "number of crystals per block in axial direction|"
     "number of blocks per bucket in transaxial direction|scanner geometry*|"
     "distance between crystals in transaxial direction (cm)|"
     "distance between crystals in axial direction (cm)|"
     "distance between blocks in transaxial direction (cm)|"
     "distance between blocks in axial direction (cm)|name of crystal map|"
     "tof timing resolution (ps)|timing resolution (ps)|maximum ring difference per segment",
     NULL, NULL},
    {LR_KEY_IDLE,
     "scanner orientation (x or y)|default bin size (cm)|effective central bin size (cm)|"
     "default number of arc-corrected bins|transaxial fov diameter (cm)|"
     "number of crystals per singles unit in transaxial direction|"
     "number of crystals per singles unit in axial direction|energy resolution|"
     "reference energy (in kev)|maximum number of (unmashed) tof time bins|"
     "number of tof time bins|size of unmashed tof time bins (ps)|size of timing bin (ps)|"
     "tof bin order|number of blocks per bucket in axial direction",
     NULL, NULL},
};

static const struct lr_known_key data_keys[] = {
    {LR_KEY_READ,
     "name of data file|imagedata byte order|image data byte order|number format|"
     "number of bytes per pixel|number of dimensions|matrix size|matrix axis label|"
     "data offset in bytes|data starting block|minimum ring difference per segment|"
     "maximum ring difference per segment|image scaling factor|quantification units",
     NULL, NULL},
    {LR_KEY_REFUSED, "number of time frames", "0|1", "several time frames cannot be read: give one of them"},
    {LR_KEY_REFUSED, "imaging modality", "PT|PET|NM|nucmed|unknown", "only data of PET can be read"},
    {LR_KEY_REFUSED, "type of data", "PET|other", "only data of PET can be read"},
    {LR_KEY_WARNED, "pet data type", "Emission|AttenuationCorrection|Normalisation", "its bins are taken for counts"},
    {LR_KEY_WARNED, "applied corrections", "none",
     "its counts are taken as they are, and those corrections are not to be given again (arc "
     "correction is refused)"},
    {LR_KEY_WARNED, "calibration factor", "1|0|-1", "images are counts, and are not multiplied by it"},
    {LR_KEY_WARNED, "start horizontal bed position (mm)", "0",
     "images are where the scanner is: move them along z by it"},
    {LR_KEY_WARNED, "start vertical bed position (mm)", "0",
     "images are where the scanner is: move them along y by it"},
    {LR_KEY_WARNED, "patient orientation", "head_in|unknown",
     "the axes of images are those of a patient who lies head first on the back: turn the image if "
     "they are to be the patient's own"},
    {LR_KEY_WARNED, "patient rotation", "supine|unknown",
     "the axes of images are those of a patient who lies head first on the back: turn the image if "
     "they are to be the patient's own"},
    {LR_KEY_IDLE,
     "version of keys|sms-mi version number|study date*|study time*|patient name|patient id|"
     "process status|data format|data description|data set*|scan data type description|"
     "image data type description|index nesting level|isotope name|isotope gamma halflife (sec)|"
     "isotope branching factor|number of radionuclides|radionuclide name|"
     "radionuclide halflife (sec)|radionuclide branching factor|image relative start time (sec)|"
     "image duration (sec)|number of energy windows|energy window lower level*|"
     "energy window upper level*|energy window pair|maximum pixel count|minimum pixel count|"
     "comment|tof mashing factor|scaling factor (mm/pixel)",
     NULL, NULL},
};

const struct lr_known_keys lr_stir_scanner_keys = {.format = "STIR's headers of scanners",
                                                   .rows = scanner_keys,
                                                   .count = sizeof(scanner_keys) / sizeof(scanner_keys[0]),
                                                   .beside = &lr_stir_data_keys};

const struct lr_known_keys lr_stir_data_keys = {.format = "STIR's headers of projection data",
                                                .rows = data_keys,
                                                .count = sizeof(data_keys) / sizeof(data_keys[0]),
                                                .beside = &lr_stir_scanner_keys};
