/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "objects.h"

#include <cstring>

using Picture = std::unique_ptr<lr_picture, void (*)(lr_picture *)>;

static void write(const Picture &picture, const std::string &path, Calls &calls)
{
    calls.run([&] { return lr_png_write(path.c_str(), picture->rgb, picture->size, &calls.log); });
}

/* Returns the correspondence image of a point (mm) with one primary module: module, r, s, weight and path_mm of each
 * pixel. */
static nb::object correspondence(Operator &op, std::array<double, 3> point_mm, int module)
{
    Engine &engine = *op.engine;
    const lr_scanner *scanner = engine.lors != nullptr ? engine.lors->scanner.get() : nullptr;
    if (scanner == nullptr || engine.events != nullptr)
        throw nb::value_error("only operators of a scanner's LORs have correspondence images");
    if (module < 0 || module >= scanner->num_modules)
        throw nb::index_error(("there is no module " + std::to_string(module) + ": the scanner has " +
                               std::to_string(scanner->num_modules) + ", from 0 on")
                                  .c_str());
    const size_t rays = (size_t)engine.info->rays, rows = rays * (size_t)scanner->modules[module].crystals[1],
                 columns = rays * (size_t)scanner->modules[module].crystals[0];
    std::vector<float> numbers(rows * columns * sizeof(lr_pixel) / sizeof(float));
    engine.calls.run([&] {
        return lr_operator_picture(engine.op, point_mm.data(), module, reinterpret_cast<lr_pixel *>(numbers.data()));
    });
    return numpy_array(std::move(numbers), {rows, columns, sizeof(lr_pixel) / sizeof(float)});
}

static void correspondence_png(const std::string &path, nb::handle pixels, const Operator &op, int module,
                               bool of_weights)
{
    Calls calls;
    nb::ndarray<const float, nb::c_contig, nb::device::cpu, nb::ro> numbers;
    if (!nb::try_cast(pixels, numbers, false)) throw nb::type_error("pixels must be float32 in C order");
    lr_correspondence_params params = {};
    params.pixels = reinterpret_cast<const lr_pixel *>(numbers.data());
    params.scanner = op.engine->lors->scanner.get();
    params.module = module;
    params.rays = op.engine->info->rays;
    params.view = of_weights ? LR_VIEW_WEIGHTS : LR_VIEW_CRYSTALS;
    params.crystal_grid = true;
    params.labelled = true;
    params.log = &calls.log;
    const Picture picture(calls.make([&] { return lr_picture_correspondence(&params); }), lr_picture_destroy);
    write(picture, path, calls);
}

static void scanner_png(const std::string &path, const Scanner &scanner)
{
    Calls calls;
    std::unique_ptr<lr_scanner_draft, void (*)(lr_scanner_draft *)> draft(
        calls.make([&] { return lr_scanner_draft_create(scanner.scanner.get(), &calls.log); }),
        lr_scanner_draft_destroy);
    std::unique_ptr<lr_diagnosis, void (*)(lr_diagnosis *)> diagnosis(
        calls.make([&] { return lr_scanner_examine(draft.get(), nullptr, &calls.log); }), lr_diagnosis_destroy);
    const lr_diagnosis_params params = {draft.get(), diagnosis.get(), nullptr, &calls.log};
    const Picture picture(calls.make([&] { return lr_picture_diagnosis(&params); }), lr_picture_destroy);
    write(picture, path, calls);
}

void bind_picture(nb::module_ &m)
{
    m.def("correspondence", &correspondence, "op"_a, "point_mm"_a, "module"_a);
    m.def("correspondence_png", &correspondence_png, "path"_a, "pixels"_a, "op"_a, "module"_a, "of_weights"_a);
    m.def("scanner_png", &scanner_png, "path"_a, "scanner"_a);
}
