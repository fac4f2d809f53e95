// Data movement between DequantizeLinear and QuantizeLinear of one scale and
// zero point, as what it is on the quantized values.

#ifndef OPTFARM_ENGINE_RUNTIME_FUSION_QDQ_QDQ_MOVEMENT_H_
#define OPTFARM_ENGINE_RUNTIME_FUSION_QDQ_QDQ_MOVEMENT_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "engine/runtime/core/kernel.h"

namespace optfarm::runtime {

// A role (kernel_role.h): a kernel that looks at no element of its first
// inputs, so that they may as well be held unsigned.
class QdqMovement : public Kernel {
 public:
  // How many inputs these are.
  virtual int tensors() const = 0;
};

// Whether the op moves elements of its first inputs (of all but the last, for
// ConcatV2) and fills nothing in, with one result.
bool IsQdqMovement(absl::string_view op);

// How many first inputs of a node with so many an op moves.
// REQUIRES: IsQdqMovement(op).
int MovedTensors(absl::string_view op, size_t inputs);

// The attribute that holds the type of the elements of input 0.
std::string ElementTypeAttr(absl::string_view op);

// `kernel` is the op's own, for the type of the quantized values.
std::unique_ptr<Kernel> MakeQdqMovement(std::unique_ptr<Kernel> kernel,
                                        int tensors);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_FUSION_QDQ_QDQ_MOVEMENT_H_
