/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "objects.h"

/* What a callback learns of an iteration; it lives during the call. */
struct Iteration {
    const lr_iteration *done;
    Engine *engine;
};

static nb::dict facts(const Iteration &iteration)
{
    const lr_iteration &done = *iteration.done;
    nb::dict facts;
    facts["number"] = done.number;
    facts["has_fit"] = done.has_fit;
    facts["log_likelihood"] = done.log_likelihood;
    facts["penalty"] = done.penalty;
    facts["measured_counts"] = done.measured_counts;
    facts["estimated_counts"] = done.estimated_counts;
    facts["left_out_lors"] = done.left_out_lors;
    facts["sensitive_counts"] = done.sensitive_counts;
    facts["seconds"] = done.seconds;
    return facts;
}

/* Copies the image after the last update. Called by the callback's thread, which the operator is locked for. */
static void copy_image(const Iteration &iteration, nb::handle out)
{
    Engine &engine = *iteration.engine;
    Array image(out, {"out", &engine.image, true, true, engine.takes_cuda});
    nb::gil_scoped_release unlocked;
    lr_vector to;
    lr_status status = image.vector(&engine.places, &engine.calls.log, &to);
    if (status == LR_OK) status = lr_vector_copy(iteration.done->image, &to);
    image.unwrap();
    if (status != LR_OK) throw Failure{status, "the image could not be copied"};
}

struct Callback {
    nb::handle function;
    Engine *engine;

    static lr_status call(void *user, const lr_iteration *done)
    {
        Callback *callback = static_cast<Callback *>(user);
        nb::gil_scoped_acquire locked;
        try {
            callback->function(Iteration{done, callback->engine});
        } catch (...) {
            callback->engine->calls.keep_exception();
            return LR_CANCELLED;
        }
        return LR_OK;
    }
};

static void reconstruct(Operator &op, nb::handle data, nb::handle out, nb::dict options)
{
    Engine &engine = *op.engine;
    if (op.is_part) throw nb::value_error("a subset is no operator to reconstruct with: give the whole one");
    Array counts(data, {"y", &engine.data}), additive, initial, kappa, image(out, {"out", &engine.image, false, true});
    lr_lor_data measured = {counts.count(), nullptr, const_cast<float *>(counts.floats())}, expected;
    lr_rdp prior = {};
    lr_recon_params params = {};
    params.op = engine.op;
    params.data = &measured;
    if (!options["additive"].is_none()) {
        additive = Array(options["additive"], {"additive", &engine.data});
        expected = {additive.count(), nullptr, const_cast<float *>(additive.floats())};
        params.additive = &expected;
    }
    if (!options["initial"].is_none()) {
        initial = Array(options["initial"], {"initial", &engine.image});
        params.initial = initial.floats();
    }
    if (!options["prior"].is_none()) {
        const nb::object given = options["prior"];
        prior.beta = nb::cast<double>(given.attr("beta"));
        prior.gamma = nb::cast<double>(given.attr("gamma"));
        prior.epsilon = nb::cast<double>(given.attr("epsilon"));
        if (!given.attr("kappa").is_none()) {
            kappa = Array(given.attr("kappa"), {"kappa", &engine.image});
            prior.kappa = kappa.floats();
        }
        params.prior = &prior;
    }
    params.algorithm = (lr_recon_algorithm)nb::cast<int>(options["algorithm"]);
    params.iterations = nb::cast<int>(options["iterations"]);
    params.subsets = nb::cast<int>(options["subsets"]);
    params.relaxation = nb::cast<double>(options["relaxation"]);
    params.relaxation_fall = nb::cast<double>(options["relaxation_fall"]);
    params.own_steps = nb::cast<bool>(options["own_steps"]);
    Callback callback = {options["callback"], &engine};
    const bool is_called = !callback.function.is_none();
    params.without_fit = !is_called;
    params.iteration = is_called ? Callback::call : nullptr;
    params.user = &callback;
    params.log = &engine.calls.log;
    params.progress = &engine.calls.progress;
    engine.calls.run(
        [&] {
            const auto held = engine.hold_sensitivity();
            lr_vector to;
            lr_status status = image.vector(&engine.places, &engine.calls.log, &to);
            if (status == LR_OK) status = lr_recon(&params, &to);
            image.unwrap();
            return status;
        },
        options["progress"]);
}

void bind_recon(nb::module_ &m)
{
    nb::class_<Iteration>(m, "Iteration").def("facts", &facts).def("copy_image", &copy_image, "out"_a);
    m.def("reconstruct", &reconstruct, "op"_a, "y"_a.none(), "out"_a.none(), "options"_a);
}
