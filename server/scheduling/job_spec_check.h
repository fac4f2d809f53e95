// The door for job specs: a client's words are checked field by field, and what
// passes is put into one form, so that equal jobs have equal bytes.

#ifndef OPTFARM_SERVER_SCHEDULING_JOB_SPEC_CHECK_H_
#define OPTFARM_SERVER_SCHEDULING_JOB_SPEC_CHECK_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "optfarm/v1/jobs.pb.h"
#include "storage/blob_id.h"

namespace optfarm::server {

// Checks everything in `given` that can be checked by itself (devices, recipe
// names and blobs are looked up elsewhere) and returns it with deprecated
// fields put into those that took their place, defaults filled in, and sources
// and their files in order.
// REQUIRES: `given.recipe` is set; a recipe name has been replaced before.
// ERRORS: InvalidArgument naming field, value and what is allowed.
absl::StatusOr<v1::JobSpec> CheckJobSpec(const v1::JobSpec& given);

// "onnx", "tflite": what the files that an engine of BenchmarkSpec runs end in.
// "" for an engine that there is none of.
absl::string_view EngineFormatName(absl::string_view engine);

// `key` as it is for the default project; for others so that no project meets
// another's.
std::string OfProject(absl::string_view project, absl::string_view key);

// ERRORS: InvalidArgument unless empty or 1..128 printable ASCII characters.
absl::Status CheckClientRequestId(absl::string_view id);

// Every blob a checked spec names, each once.
std::vector<storage::BlobId> BlobsOf(const v1::JobSpec& spec);

// SHA-256 over all that decides the outcome of the optimize task of a checked
// spec: model, recipe, inputs, outputs, data. File names of model and labels,
// devices and limits are not among it.
std::string ActionDigest(const v1::JobSpec& spec);

// Looks at the first bytes of a file that is to be a model and recognizes
// what people send by mistake (an archive, a Keras file, a SavedModel, ...).
// Files it does not recognize pass: the worker parses them. ERRORS:
// FailedPrecondition that says what it is and what to do.
absl::Status CheckLooksLikeGraph(absl::string_view first_bytes);

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SCHEDULING_JOB_SPEC_CHECK_H_
