/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "objects.h"

#include <cmath>
#include <map>

using Numbers = std::map<std::string, double>;

Scanner Scanner::of(lr_scanner *scanner)
{
    return {std::shared_ptr<lr_scanner>(scanner, lr_scanner_destroy), nullptr};
}

const std::shared_ptr<Lors> &Scanner::list_lors()
{
    if (lors == nullptr) {
        Calls calls;
        auto made = std::make_shared<Lors>();
        made->scanner = scanner;
        made->lors = calls.make([&] { return lr_lors_create_watched(scanner.get(), &calls.progress, &calls.log); });
        lors = made;
    }
    return lors;
}

/* Takes over a new scanner, and warns of the first length that is surely a slip. */
static Scanner take(Calls &calls, lr_scanner *scanner)
{
    Scanner made = Scanner::of(scanner);
    lr_diagnosis_destroy(calls.make([&] {
        lr_diagnosis *slips = lr_scanner_find_slips(scanner, &calls.log);
        if (slips != nullptr && slips->num_suspects > 0) {
            const std::string sentence = std::string(scanner->name) + ": " + slips->findings[0].sentence;
            calls.log.write(calls.log.user, LR_LOG_WARNING, LR_OK, sentence.c_str());
        }
        return slips;
    }));
    return made;
}

static Scanner scanner_read(const std::string &name_or_path)
{
    Calls calls;
    return take(calls, calls.make([&] { return lr_scanner_read(name_or_path.c_str(), &calls.log); }));
}

/* Makes the parameters that ring scanners and lists of modules have in common. Keys of `numbers`: names of fields of
 * lr_scanner_params and lr_coincidence. */
static lr_scanner_params params_of(const std::string &name, const Numbers &numbers, const lr_log *log)
{
    const auto number = [&](const char *key) {
        const auto found = numbers.find(key);
        return found != numbers.end() ? found->second : 0.0;
    };
    lr_scanner_params params = {};
    params.name = name.c_str();
    params.coincidence.field_of_view_mm = number("field_of_view_mm");
    params.coincidence.min_module_difference = (int)number("min_module_difference");
    params.coincidence.limits_ring_difference = numbers.count("max_ring_difference") != 0;
    params.coincidence.max_ring_difference = (int)number("max_ring_difference");
    params.detection_depth_mm = number("detection_depth_mm");
    params.tof_resolution_ps = number("tof_resolution_ps");
    params.crystal_mu_per_mm = number("crystal_mu_per_mm");
    params.log = log;
    return params;
}

static Scanner scanner_ring(const std::string &name, const Numbers &numbers, std::array<int, 2> crystals,
                            std::array<double, 2> pitch_mm, std::array<double, 2> face_mm,
                            const std::vector<double> &layers_mm)
{
    Calls calls;
    const lr_scanner_params params = params_of(name, numbers, &calls.log);
    std::vector<lr_layer> layers(layers_mm.size());
    for (size_t k = 0; k < layers.size(); k++) layers[k].depth_mm = layers_mm[k];
    lr_ring ring = {};
    ring.radius_mm = numbers.at("radius_mm");
    ring.modules = (int)numbers.at("modules");
    ring.first_angle_deg = numbers.at("first_angle_deg");
    ring.rings = (int)numbers.at("rings");
    ring.ring_pitch_mm = numbers.at("ring_pitch_mm");
    ring.depth_mm = numbers.at("depth_mm");
    ring.layers = layers.data();
    ring.num_layers = (int)layers.size();
    for (int axis = 0; axis < 2; axis++) {
        ring.blocks[axis] = 1;
        ring.block_crystals[axis] = &crystals[axis];
        ring.pitch_mm[axis] = pitch_mm[axis];
        ring.face_mm[axis] = face_mm[axis];
    }
    return take(calls, calls.make([&] { return lr_scanner_create_ring(&params, &ring); }));
}

/* The count of numbers of a module: 3 each for centre, u, v and normal, 2 each for crystals, pitch and face, and 1 for
 * depth. */
enum { MODULE_NUMBERS = 19 };

static Scanner scanner_of_modules(const std::string &name, const Numbers &numbers, nb::handle array)
{
    Calls calls;
    const auto rows = rows_of<double>(array, "modules", MODULE_NUMBERS);
    std::vector<lr_module> modules(rows.shape(0));
    for (size_t m = 0; m < modules.size(); m++) {
        const double *row = rows.data() + m * MODULE_NUMBERS;
        lr_module &module = modules[m];
        module = {};
        for (int k = 0; k < 3; k++) {
            module.centre_mm[k] = row[k];
            module.u[k] = row[3 + k];
            module.v[k] = row[6 + k];
        }
        for (int axis = 0; axis < 2; axis++) {
            module.crystals[axis] = (int)row[12 + axis];
            module.pitch_mm[axis] = row[14 + axis];
            module.face_mm[axis] = row[16 + axis];
        }
        module.depth_mm = row[18];
    }
    lr_scanner_params params = params_of(name, numbers, &calls.log);
    params.modules = modules.data();
    params.num_modules = (int)modules.size();
    Scanner made = take(calls, calls.make([&] { return lr_scanner_create(&params); }));
    for (size_t m = 0; m < modules.size(); m++) {
        const double *normal = rows.data() + m * MODULE_NUMBERS + 9, *inward = made.scanner->modules[m].normal;
        if (normal[0] * inward[0] + normal[1] * inward[1] + normal[2] * inward[2] < 0)
            throw nb::value_error(("module " + std::to_string(m) +
                                   " looks away from the scanner's axis: write its normal the other way round")
                                      .c_str());
    }
    return made;
}

static nb::list scanner_check(const Scanner &scanner, const std::optional<GridTuple> &grid_given)
{
    Calls calls;
    lr_grid grid = {};
    if (grid_given) grid = grid_of(*grid_given);
    lr_scanner_draft *draft = calls.make([&] { return lr_scanner_draft_create(scanner.scanner.get(), &calls.log); });
    std::unique_ptr<lr_scanner_draft, void (*)(lr_scanner_draft *)> drafted(draft, lr_scanner_draft_destroy);
    lr_diagnosis *diagnosis =
        calls.make([&] { return lr_scanner_examine(draft, grid_given ? &grid : nullptr, &calls.log); });
    std::unique_ptr<lr_diagnosis, void (*)(lr_diagnosis *)> examined(diagnosis, lr_diagnosis_destroy);
    nb::list findings;
    for (int k = 0; k < diagnosis->num_findings; k++) {
        const lr_finding &finding = diagnosis->findings[k];
        findings.append(nb::make_tuple(finding.severity == LR_SUSPECT, lr_finding_kind_name(finding.kind),
                                       finding.sentence, finding.remedy));
    }
    return findings;
}

template <class Centres> static nb::object centres(const Scanner &scanner, Centres centres_of)
{
    std::vector<double> mm(3 * (size_t)scanner.scanner->num_crystals);
    centres_of(scanner.scanner.get(), reinterpret_cast<double(*)[3]>(mm.data()));
    return numpy_array(std::move(mm), {(size_t)scanner.scanner->num_crystals, 3});
}

static nb::object lor_crystals(Scanner &scanner, nb::handle numbers)
{
    const lr_lors *lors = scanner.list_lors()->lors;
    const auto fill = [&](const lr_lor_span &span) {
        Calls calls;
        std::vector<int32_t> crystals(2 * (size_t)span.count);
        calls.run([&] {
            return lr_lor_span_crystals(lors, &span, reinterpret_cast<int32_t(*)[2]>(crystals.data()), &calls.log);
        });
        return numpy_array(std::move(crystals), {(size_t)span.count, 2});
    };
    if (numbers.is_none()) return fill({nullptr, 0, lors->count});
    const auto list = rows_of<int64_t>(numbers, "lors", 0);
    for (size_t k = 0; k < list.size(); k++) {
        if (list.data()[k] < 0 || list.data()[k] >= lors->count)
            throw nb::index_error(("there is no LOR " + std::to_string(list.data()[k]) + ": the scanner has " +
                                   std::to_string(lors->count) + ", from 0 on")
                                      .c_str());
    }
    return fill({list.data(), 0, (int64_t)list.size()});
}

static nb::object lor_of(Scanner &scanner, nb::handle pairs)
{
    const lr_lors *lors = scanner.list_lors()->lors;
    const auto crystals = rows_of<int32_t>(pairs, "crystals", 2);
    std::vector<int64_t> numbers(crystals.shape(0));
    for (size_t k = 0; k < crystals.size(); k++) {
        const int32_t crystal = crystals.data()[k];
        if (crystal < 0 || crystal >= scanner.scanner->num_crystals)
            throw nb::index_error(("there is no crystal " + std::to_string(crystal) + ": the scanner has " +
                                   std::to_string(scanner.scanner->num_crystals) + ", from 0 on")
                                      .c_str());
    }
    {
        nb::gil_scoped_release unlocked;
        const auto *pairs_of = reinterpret_cast<const int32_t(*)[2]>(crystals.data());
        lr_lors_numbers(lors, pairs_of, (int64_t)numbers.size(), numbers.data());
        for (int64_t &number : numbers)
            if (number >= 0 && !lr_lors_in_coincidence(lors, number)) number = -1;
    }
    const size_t num = numbers.size();
    return numpy_array(std::move(numbers), {num});
}

void bind_scanner(nb::module_ &m)
{
    m.def("presets", [] {
        std::vector<std::string> names;
        for (const char *const *name = lr_scanner_presets(); *name != nullptr; name++) names.push_back(*name);
        return names;
    });
    m.def("crystal_material_mu_per_mm", &lr_crystal_material_mu_per_mm, "material"_a);
    nb::class_<Scanner>(m, "Scanner")
        .def_static("read", &scanner_read, "name_or_path"_a)
        .def_static("ring", &scanner_ring, "name"_a, "numbers"_a, "crystals"_a, "pitch_mm"_a, "face_mm"_a,
                    "layers_mm"_a)
        .def_static("of_modules", &scanner_of_modules, "name"_a, "numbers"_a, "modules"_a)
        .def("check", &scanner_check, "grid"_a.none())
        .def("lor_crystals", &lor_crystals, "lors"_a.none())
        .def("lor_of", &lor_of, "crystals"_a)
        .def("crystals", [](const Scanner &scanner) { return centres(scanner, lr_scanner_crystal_centres); })
        .def("hits", [](const Scanner &scanner) { return centres(scanner, lr_scanner_hit_centres); })
        .def_prop_ro("name", [](const Scanner &scanner) { return scanner.scanner->name; })
        .def_prop_ro("num_modules", [](const Scanner &scanner) { return scanner.scanner->num_modules; })
        .def_prop_ro("num_crystals", [](const Scanner &scanner) { return scanner.scanner->num_crystals; })
        .def_prop_ro("num_lors", [](Scanner &scanner) { return scanner.list_lors()->lors->count; })
        .def_prop_ro("tof_resolution_ps", [](const Scanner &scanner) { return scanner.scanner->tof_resolution_ps; });
}
