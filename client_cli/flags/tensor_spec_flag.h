// The text in --inputs: names, with shapes where the graph does not know them.
//
//   --inputs=a,b                      two names
//   --inputs=image:1,224,224,3        a name and its shape
//   --inputs=image:1,224,224,3,label  a shape ends where the next name begins
//   --inputs=split:1                  output 1 of node `split`
//   --inputs=split:1:20,30            output 1 of node `split` and its shape
//   --inputs=image:[1,224,224,3]      the same as the second, with brackets
//   --inputs=image:1x224x224x3        or with 'x'
//
// A word of digits (or -1 or ?, an unknown dimension) after a name with a colon
// belongs to its shape. A vector's shape needs the port before it
// or brackets ("x:0:784", "x:[784]"): "x:784" is output 784.

#ifndef OPTFARM_CLIENT_CLI_FLAGS_TENSOR_SPEC_FLAG_H_
#define OPTFARM_CLIENT_CLI_FLAGS_TENSOR_SPEC_FLAG_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "optfarm/v1/report.pb.h"

namespace optfarm::client_cli {

// Parses the values of a flag that may be given several times.
// ERRORS: InvalidArgument with the text and what is wrong with it.
absl::StatusOr<std::vector<v1::TensorSpec>> ParseTensorSpecs(
    const std::vector<std::string>& values);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_FLAGS_TENSOR_SPEC_FLAG_H_
