// What a kernel can do besides computing, for the fusions that come after the
// one that made it: its roles. A role is an abstract class, a kernel has it by
// deriving from it, and a fusion asks with RoleOf. So a new role is one class
// and the kernels that have it; no list of all roles exists.
//
// | role           | what a kernel that has it can do                         |
// |----------------|----------------------------------------------------------|
// | WeightReader   | fetch what the next layer reads first (next_weights.h)   |
// | JoinableKernel | write its result where a Concat would (joined_part.h)    |
// | WinogradLayer  | use Winograd's transforms (winograd_convolution.h)       |
// | RowProducer    | make some rows of its result alone (row_bands.h)         |
// | RowConsumer    | read such rows (row_bands.h)                             |
//
// The class says that the code is there. Whether it serves with the attributes
// and weights of one kernel is a question that the role itself answers
// (JoinableKernel::MayBePart, RowProducer::Elements, RowConsumer::Reads).

#ifndef OPTFARM_ENGINE_RUNTIME_FUSION_KERNEL_ROLE_H_
#define OPTFARM_ENGINE_RUNTIME_FUSION_KERNEL_ROLE_H_

#include "engine/runtime/core/kernel.h"

namespace optfarm::runtime {

// The kernel in this role; nullptr when it does not have it, or for nullptr.
// OWNERSHIP: the kernel's.
template <typename Role>
Role* RoleOf(Kernel* kernel) {
  return dynamic_cast<Role*>(kernel);
}

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_FUSION_KERNEL_ROLE_H_
