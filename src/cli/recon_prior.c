/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * recon --algorithm bsrem: the prior whose multiple is subtracted from the log-likelihood. */
#include "recon.h"

const struct cli_option recon_prior_options[] = {
    {"--prior", "NAME", "rdp (relative differences) or none; default none", false},
    {"--beta", "B", "strength; needed with --prior", false},
    {"--gamma", "G", "how much less edges weigh than noise; default 2", false},
    {"--epsilon", "E",
     "in units of the image; default a hundredth of the uniform image of the counts that the "
     "additive term leaves",
     false},
    {"--kappa", "IMAGE", "weights of the voxels; default 1", false},
    {0},
};

static double at_least_0(struct cli_args *args, const char *name, double fallback)
{
    const double value = args_number(args, name, fallback, false);
    if (value < 0) args_complain(args, "%s %s: it must not be negative", name, args_text(args, name));
    return value;
}

static void check_options(struct cli_args *args, const struct recon_request *request)
{
    for (int k = 0; recon_prior_options[k].name != NULL; k++) {
        const char *name = recon_prior_options[k].name;
        if (args_has(args, name) && request->algorithm != RECON_BSREM)
            args_complain(args, "%s belongs to --algorithm bsrem", name);
        else if (args_has(args, name) && k > 0 && !request->has_prior)
            args_complain(args, "%s belongs to --prior rdp", name);
    }
    if (request->has_prior && !args_has(args, "--beta"))
        args_complain(args, "--prior rdp needs --beta B, how strong it is");
}

void recon_read_prior(struct cli_args *args, struct recon_request *request)
{
    static const char *const priors[] = {"none", "rdp", NULL};
    request->has_prior = args_word(args, "--prior", priors, 0) == 1;
    request->prior.beta = at_least_0(args, "--beta", 0);
    request->prior.gamma = at_least_0(args, "--gamma", 2);
    request->prior.epsilon = args_number(args, "--epsilon", 0, true);
    request->kappa = args_text(args, "--kappa");
    check_options(args, request);
}

void recon_prior_json(const struct recon_request *request, struct json *json)
{
    if (!request->has_prior) return;
    json_open(json, "prior", '{');
    json_text(json, "name", "rdp");
    json_number(json, "beta", request->prior.beta);
    json_number(json, "gamma", request->prior.gamma);
    json_number(json, "epsilon", request->prior.epsilon);
    json_text(json, "kappa", request->kappa);
    json_close(json, '}');
}
