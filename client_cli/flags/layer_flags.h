// The flags with which TensorFlow's benchmark_model names inputs: three lists
// side by side, --input_layer, --input_layer_type and --input_layer_shape.

#ifndef OPTFARM_CLIENT_CLI_FLAGS_LAYER_FLAGS_H_
#define OPTFARM_CLIENT_CLI_FLAGS_LAYER_FLAGS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "optfarm/v1/report.pb.h"

namespace optfarm::client_cli {

// `names` and `types` are separated by commas, `shapes` by colons and their
// dimensions by commas; an empty shape is not known. Types and shapes may be
// left out altogether.
// ERRORS: InvalidArgument naming the flags when the counts differ, a type that
// does not exist, or a malformed shape.
absl::StatusOr<std::vector<v1::TensorSpec>> ParseLayerFlags(
    const std::string& names, const std::string& types,
    const std::string& shapes);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_FLAGS_LAYER_FLAGS_H_
