/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_PYTHON_OBJECTS_H
#define LR_PYTHON_OBJECTS_H

#include "arrays.h"
#include "calls.h"

#include <lr/lr.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

using namespace nb::literals;

/* Objects of the library that belong to objects of Python. A shared pointer keeps alive what an object needs. A scanner
 * that Python has freed, for example, exists as long as its operators. */

struct Lors {
    std::shared_ptr<lr_scanner> scanner; /* null for histo-images */
    lr_lors *lors = nullptr;
    ~Lors() { lr_lors_destroy(lors); }
};

struct Scanner {
    std::shared_ptr<lr_scanner> scanner;
    std::shared_ptr<Lors> lors; /* null until list_lors is called */

    static Scanner of(lr_scanner *scanner);
    const std::shared_ptr<Lors> &list_lors();
};

struct ListMode {
    std::shared_ptr<Lors> lors;
    std::vector<lr_event> events;
    lr_events_info info = {};
    ListMode() = default;
    ListMode(const ListMode &) = delete;
    ~ListMode() { lr_events_info_finish(&info); }
};

/* A grid: size (nx, ny, nz), voxel_mm, and the centre of voxel (0, 0, 0). If the centre is None, the grid is centred on
 * the scanner. */
using GridTuple = std::tuple<std::array<int, 3>, std::array<double, 3>, std::optional<std::array<double, 3>>>;
lr_grid grid_of(const GridTuple &tuple);
Shape image_shape(const lr_grid &grid);

/* Factors of rows of the matrix, and the objects from which they are computed. */
struct Factors {
    std::vector<float> efficiencies; /* one for each crystal, or for each LOR */
    lr_crystal_product crystals = {};
    lr_lor_data lors = {};
    lr_attenuation *attenuation = nullptr;
    lr_source_product product = {};
    lr_lor_source source = {};
    Factors() = default;
    Factors(const Factors &) = delete;
    ~Factors() { lr_attenuation_destroy(attenuation); }
};

/* The LORs of one rank. Each subset is divided evenly among the ranks (lr_partition). */
struct Share {
    int subsets = 1, interleave = 1;
    std::vector<int32_t> group_of; /* group of each module pair, like lr_recon_params.subset_of with interleave */
    std::vector<int64_t> lors;     /* the rank's LORs, by their numbers in the scanner */
    int64_t num_all = 0;           /* number of all LORs of the scanner */
};

/* An operator of the library and the objects that it needs. An Operator of Python and all its subsets have one
 * Engine. */
struct Engine {
    Calls calls;
    CudaPlaces places{&calls.log};
    std::shared_ptr<Lors> lors; /* LORs of the scanner; null for the family direct */
    std::shared_ptr<ListMode> events;
    std::unique_ptr<Share> share; /* LORs of one rank; null = all LORs */
    std::unique_ptr<Factors> factors;
    std::shared_ptr<Engine> sensitivity_of; /* list mode: the engine that gives the sensitivity; null = none */
    lr_operator *op = nullptr;
    const lr_operator_info *info = nullptr;
    Shape image; /* shape of images */
    Shape data;  /* shape of all data */
    bool takes_doubles = false;
    bool takes_cuda = false;
    ~Engine();
    void opened(lr_operator *made);

    /* Returns how many bytes were copied between the host and the places of the operator and of arrays on devices. */
    lr_traffic traffic() const;
};

/* Locks, during a call, the engine from which an operator takes its sensitivity. This engine may compute the
 * sensitivity in the call, and then reports to the caller. */
class SensitivityHold
{
  public:
    explicit SensitivityHold(Engine &engine);
    ~SensitivityHold();
    SensitivityHold(const SensitivityHold &) = delete;

  private:
    Engine *held;
    std::unique_lock<std::mutex> alone;
};

/* An operator in Python: all data of an engine, or a subset of them. */
struct Operator {
    std::shared_ptr<Engine> engine;
    bool is_part = false;
    std::vector<int32_t> pairs; /* module pairs of the part, or: */
    std::vector<int64_t> lors;
    Shape data; /* shape of its data */

    lr_selection selection() const;
};

void bind_scanner(nb::module_ &m);
void bind_operator(nb::module_ &m);
void bind_listmode(nb::module_ &m);
void bind_direct(nb::module_ &m);
void bind_recon(nb::module_ &m);
void bind_io(nb::module_ &m);
void bind_picture(nb::module_ &m);

#endif
