// A model in whatever form a user has it: a frozen graph as it is; a SavedModel
// (folder or archive), or a graph with a checkpoint, frozen here first.

#ifndef OPTFARM_CLIENT_CLI_JOBS_MODEL_SOURCE_H_
#define OPTFARM_CLIENT_CLI_JOBS_MODEL_SOURCE_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client_cli/command/interrupt_cleanup.h"
#include "optfarm/v1/report.pb.h"

namespace optfarm::client_cli {

struct ModelSource {
  // A graph file, a SavedModel's folder or archive, or a .meta file.
  std::string path;
  // Empty: none.
  std::string checkpoint;
  // Which graph of a SavedModel; empty: {serve}, or the only one.
  std::vector<std::string> tags;
  // Which signature tells inputs and outputs; empty: the default one.
  std::string signature;
  // What the user named; empty: the signature tells.
  std::vector<v1::TensorSpec> inputs;
  std::vector<std::string> outputs;
  // A folder for what is made here, the caller's; empty: one of its own, which
  // goes with the prepared model.
  std::string scratch;
};

struct PreparedModel {
  // A graph file.
  std::string path;
  std::vector<v1::TensorSpec> inputs;
  std::vector<std::string> outputs;
  // What was frozen from what, one sentence each.
  std::vector<std::string> remarks;
  // The same for machines; set when something was frozen.
  std::optional<v1::ModelOrigin> origin;
  // Holds the graph file when it was made here and not in `scratch`; it goes
  // also when the user presses Ctrl-C.
  std::shared_ptr<InterruptCleanup> folder;
};

// REQUIRES: called before other threads are made, see InterruptCleanup.
// ERRORS: those of formats::Freeze and of unpacking; InvalidArgument when flags
// do not go together or nothing names the outputs.
absl::StatusOr<PreparedModel> PrepareModel(const ModelSource& source);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_JOBS_MODEL_SOURCE_H_
