// The files that a build with few kernels takes: TensorFlow's header of
// selective registration, and our own list.

#ifndef OPTFARM_CLIENT_CLI_LOCAL_KERNEL_LISTS_H_
#define OPTFARM_CLIENT_CLI_LOCAL_KERNEL_LISTS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine/inspect/required_kernels.h"

namespace optfarm::client_cli {

// Adds the kernels of a list like "NoOp:NoOp,_Recv:RecvOp".
// ERRORS: UsageError for an entry that is not OP:CLASS.
absl::Status AddDefaultKernels(absl::string_view list,
                               inspect::RequiredKernels* kernels);

// The header with TensorFlow's macros SHOULD_REGISTER_OP, _OP_KERNEL and
// _OP_GRADIENT, made by `tool`; with `everything` they are true for all.
std::string RegistrationHeader(const inspect::RequiredKernels& kernels,
                               absl::string_view tool, bool everything);

// What -DOPTFARM_KERNELS_FILE takes: an op a line with its dtypes.
std::string KernelsFile(const inspect::RequiredKernels& kernels);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_LOCAL_KERNEL_LISTS_H_
