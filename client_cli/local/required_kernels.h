// Which kernels a set of graphs needs, for builds of a runtime that has no
// others: TensorFlow's header of selective registration, and our own list.

#ifndef OPTFARM_CLIENT_CLI_LOCAL_REQUIRED_KERNELS_H_
#define OPTFARM_CLIENT_CLI_LOCAL_REQUIRED_KERNELS_H_

#include <set>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tensorflow {
class GraphDef;
}  // namespace tensorflow

namespace optfarm::client_cli {

struct RequiredKernels {
  // Op and TensorFlow's class for it; "" for ops without kernels.
  std::set<std::pair<std::string, std::string>> classes;
  // Ops whose class we do not know, or that TensorFlow has no CPU kernel for.
  std::set<std::string> without_class;
  // Every op with the dtypes that go in and out of its nodes: "Conv2D",
  // "float". An op without tensors has one entry with "".
  std::set<std::pair<std::string, std::string>> dtypes;
  // Ops that our runtime has no kernel for.
  std::set<std::string> not_in_runtime;
};

// Adds what the nodes of a graph and of its functions need.
void AddRequiredKernels(const tensorflow::GraphDef& graph,
                        RequiredKernels* kernels);

// Adds the kernels of a list like "NoOp:NoOp,_Recv:RecvOp".
// ERRORS: UsageError for an entry that is not OP:CLASS.
absl::Status AddDefaultKernels(absl::string_view list,
                               RequiredKernels* kernels);

// The header with TensorFlow's macros SHOULD_REGISTER_OP, _OP_KERNEL and
// _OP_GRADIENT, made by `tool`; with `everything` they are true for all.
std::string RegistrationHeader(const RequiredKernels& kernels,
                               absl::string_view tool, bool everything);

// What -DOPTFARM_KERNELS_FILE takes: an op a line with its dtypes.
std::string KernelsFile(const RequiredKernels& kernels);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_LOCAL_REQUIRED_KERNELS_H_
