/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "objects.h"

/* The argument of the callback for iterations. It is valid only during the call. */
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

/* Copies the image after the iteration to `out`. Only the thread of the callback may do this, because the operator is
 * locked for this thread. */
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

/* An optional argument of a reconstruction: an array, and its vector during the call. */
struct Given {
    Array array;
    lr_vector vector = {};
    bool is_given = false;

    Given(nb::handle object, const char *name, const Shape &shape, const Engine &engine)
    {
        if (object.is_none()) return;
        array = Array(object, {name, &shape, true, false, engine.takes_cuda});
        is_given = true;
    }
    const lr_vector *get() const { return is_given ? &vector : nullptr; }
};

/* The ranks that reconstruct together, from the caller's MPI communicator; address 0 = one process. If this rank ends
 * without success, the other ranks are informed, and their error names this rank. */
struct Ranks {
    lr_comm *comm = nullptr;
    bool is_good = false;

    Ranks(uint64_t mpi_comm, Calls &calls)
    {
        lr_comm_params params = {};
        params.kind = LR_COMM_MPI;
        params.log = &calls.log;
        params.mpi_comm = reinterpret_cast<const void *>(static_cast<uintptr_t>(mpi_comm));
        if (mpi_comm != 0) comm = calls.make([&] { return lr_comm_open(&params); });
    }
    Ranks(const Ranks &) = delete;

    ~Ranks()
    {
        if (comm == nullptr) return;
        nb::gil_scoped_release unlocked;
        if (!is_good) lr_comm_fail(comm, LR_FAILED);
        lr_comm_close(comm);
    }
};

static void reconstruct(Operator &op, nb::handle data, nb::handle out, nb::dict options)
{
    Engine &engine = *op.engine;
    Ranks ranks(nb::cast<uint64_t>(options["mpi_comm"]), engine.calls);
    if (op.is_part) throw nb::value_error("a subset is no operator to reconstruct with: give the whole one");
    const nb::object given_prior = options["prior"], none = nb::none();
    Given y(data, "y", engine.data, engine), additive(options["additive"], "additive", engine.data, engine),
        initial(options["initial"], "initial", engine.image, engine),
        kappa(given_prior.is_none() ? none : nb::object(given_prior.attr("kappa")), "kappa", engine.image, engine);
    Array image(out, {"out", &engine.image, true, true, engine.takes_cuda});
    if (!y.is_given) throw nb::type_error("y is None: give the measured counts");
    lr_rdp prior = {};
    lr_recon_params params = {};
    params.op = engine.op;
    params.data = y.get();
    params.additive = additive.get();
    params.initial = initial.get();
    if (!given_prior.is_none()) {
        prior.beta = nb::cast<double>(given_prior.attr("beta"));
        prior.gamma = nb::cast<double>(given_prior.attr("gamma"));
        prior.epsilon = nb::cast<double>(given_prior.attr("epsilon"));
        prior.kappa = kappa.get();
        params.prior = &prior;
    }
    params.algorithm = (lr_recon_algorithm)nb::cast<int>(options["algorithm"]);
    params.iterations = nb::cast<int>(options["iterations"]);
    params.subsets = nb::cast<int>(options["subsets"]);
    params.comm = ranks.comm;
    std::vector<int32_t> group_of;
    if (engine.share != nullptr) {
        if (params.subsets != engine.share->subsets)
            throw nb::value_error(("the operator's part was dealt for " + std::to_string(engine.share->subsets) +
                                   " subsets, and subsets is " + std::to_string(params.subsets) +
                                   ": make the operator with subsets=" + std::to_string(params.subsets))
                                      .c_str());
        params.subset_of = engine.share->group_of.data();
        params.interleave = engine.share->interleave;
    } else if (lr_comm_get_info(ranks.comm).size > 1) {
        if (!engine.info->of_events && lr_direct_get_info(engine.op) == nullptr)
            throw nb::value_error("each rank has all LORs: make its operator with part=(comm.rank, comm.size), "
                                  "subsets=, and take its data by y[A.indices]");
        for (int64_t k = 0; k < engine.info->lors->num_pairs; k++) group_of.push_back((int32_t)(k % params.subsets));
        params.subset_of = group_of.data();
    }
    params.relaxation = nb::cast<double>(options["relaxation"]);
    params.relaxation_fall = nb::cast<double>(options["relaxation_fall"]);
    params.own_steps = nb::cast<bool>(options["own_steps"]);
    Callback callback = {options["callback"], &engine};
    const bool is_called = !callback.function.is_none();
    params.iteration = is_called ? Callback::call : nullptr;
    params.user = &callback;
    params.log = &engine.calls.log;
    params.progress = &engine.calls.progress;
    engine.calls.run(
        [&] {
            const SensitivityHold held(engine);
            lr_vector to;
            lr_status status = image.vector(&engine.places, &engine.calls.log, &to);
            for (Given *given : {&y, &additive, &initial, &kappa})
                if (status == LR_OK) status = given->array.vector(&engine.places, &engine.calls.log, &given->vector);
            bool is_any_called = is_called; /* if one rank has a callback, all ranks add up the fit */
            if (status == LR_OK) status = lr_comm_any(ranks.comm, &is_any_called);
            params.without_fit = !is_any_called;
            lr_vector_sums sums = {};
            if (status == LR_OK) status = lr_vector_add_up(&y.vector, nullptr, &sums);
            double counts = sums.sum + (double)sums.not_finite; /* of all ranks */
            if (status == LR_OK) status = lr_comm_sum_numbers(ranks.comm, &counts, 1);
            if (status == LR_OK && counts == 0) {
                engine.calls.keep_exception(std::make_exception_ptr(
                    Failure{LR_BAD_INPUT, "y holds no counts: every number is 0, of which no image comes: is it the "
                                          "right array?"}));
                status = LR_BAD_INPUT;
            }
            if (status == LR_OK) status = lr_recon(&params, &to);
            for (Given *given : {&y, &additive, &initial, &kappa}) {
                if (status == LR_OK) status = given->array.finish();
                given->array.unwrap();
            }
            if (status == LR_OK) status = image.finish();
            image.unwrap();
            return status == LR_OK ? lr_comm_barrier(ranks.comm) : lr_comm_fail(ranks.comm, status);
        },
        options["progress"]);
    ranks.is_good = true;
}

/* Informs the other ranks, which are going to reconstruct, that this rank has failed already. */
static void fail(uint64_t mpi_comm)
{
    Calls calls;
    const Ranks ranks(mpi_comm, calls);
}

void bind_recon(nb::module_ &m)
{
    nb::class_<Iteration>(m, "Iteration").def("facts", &facts).def("copy_image", &copy_image, "out"_a);
    m.def("reconstruct", &reconstruct, "op"_a, "y"_a.none(), "out"_a.none(), "options"_a);
    m.def("fail", &fail, "mpi_comm"_a);
}
