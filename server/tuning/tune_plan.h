// From what a user asks of a tune to what the search is given, and from its
// candidates to jobs.

#ifndef OPTFARM_SERVER_TUNING_TUNE_PLAN_H_
#define OPTFARM_SERVER_TUNING_TUNE_PLAN_H_

#include <string>

#include "absl/status/statusor.h"
#include "engine/tune/search.h"
#include "optfarm/v1/jobs.pb.h"
#include "optfarm/v1/tunes.pb.h"

namespace optfarm::server {

// Checks what can be checked by itself and returns the spec with defaults
// filled in. The model, the data and the devices are looked up when the first
// job is submitted.
// ERRORS: InvalidArgument naming field, value and what is allowed.
absl::StatusOr<v1::TuneSpec> CheckTuneSpec(const v1::TuneSpec& given);

// REQUIRES: `spec` is from CheckTuneSpec, here and below.
tune::SearchOptions SearchOptionsOf(const v1::TuneSpec& spec);

// The name of all jobs of a tune, "tune-...": the same for tunes that may share
// their jobs, because model, data, devices and this program are the same.
std::string JobNameOf(const v1::TuneSpec& spec, const std::string& tune_id);

// The job of a candidate. Its request id is made of what it asks for, so that
// a second tune, or the same one after a restart, finds it. `attempt` counts
// from 1.
v1::SubmitJobRequest CandidateJob(const v1::TuneSpec& spec,
                                  const std::string& job_name,
                                  const tune::Candidate& candidate,
                                  int attempt);

// The spec as clients see it: without the lists of sample files.
v1::TuneSpec ShownSpec(const v1::TuneSpec& spec);

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_TUNING_TUNE_PLAN_H_
