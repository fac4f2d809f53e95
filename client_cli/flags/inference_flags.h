// The flags that strip_unused and optimize_for_inference share in meaning.

#ifndef OPTFARM_CLIENT_CLI_FLAGS_INFERENCE_FLAGS_H_
#define OPTFARM_CLIENT_CLI_FLAGS_INFERENCE_FLAGS_H_

#include <string>

#include "absl/status/statusor.h"
#include "engine/transforms/cleanup/inference_graph.h"

namespace optfarm::client_cli {

// Makes the border from lists "a,b" of names and of types, whose words are
// numbers of TensorFlow's DataType enum or names ("1,uint8").
// ERRORS: UsageError for a word that is no type.
absl::StatusOr<transforms::GraphBorder> ParseGraphBorder(
    const std::string& inputs, const std::string& outputs,
    const std::string& types);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_FLAGS_INFERENCE_FLAGS_H_
