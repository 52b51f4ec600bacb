/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * LORaster renders PET system matrices. This header includes the whole library. Each of the headers below can also be
 * included alone, in C11 and C++17. */
#ifndef LR_LR_H
#define LR_LR_H

#include <lr/comm.h>
#include <lr/crystals.h>
#include <lr/design.h>
#include <lr/device.h>
#include <lr/direct.h>
#include <lr/doctor.h>
#include <lr/events.h>
#include <lr/factors.h>
#include <lr/forecast.h>
#include <lr/grid.h>
#include <lr/io.h>
#include <lr/listmode.h>
#include <lr/log.h>
#include <lr/lors.h>
#include <lr/operator.h>
#include <lr/phantom.h>
#include <lr/picture.h>
#include <lr/recon.h>
#include <lr/scanner.h>
#include <lr/vector.h>

#endif
