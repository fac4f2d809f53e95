// A model as this program runs and measures it.

#ifndef OPTFARM_CLIENT_CLI_LOCAL_LAID_OUT_MODEL_H_
#define OPTFARM_CLIENT_CLI_LOCAL_LAID_OUT_MODEL_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/formats/tensorflow/mapped_graph.h"

namespace optfarm::client_cli {

// A model of any format, from other formats than TensorFlow's without the
// Transposes that it can do without (transforms/layout/lay_out_model.h).
// Inputs, outputs and the tensors `kept` have the file's order of axes.
// ERRORS: formats::LoadModel's, transforms::LayOutModel's.
absl::StatusOr<formats::LoadedGraph> LoadLaidOut(
    const std::string& path, const std::vector<std::string>& kept);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_LOCAL_LAID_OUT_MODEL_H_
