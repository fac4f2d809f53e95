// The table behind tensorflow_kernels.h.

#ifndef OPTFARM_ENGINE_GRAPH_TENSORFLOW_KERNEL_TABLE_H_
#define OPTFARM_ENGINE_GRAPH_TENSORFLOW_KERNEL_TABLE_H_

#include "absl/types/span.h"

namespace optfarm::graph {

struct KernelClass {
  const char* op;
  // The class as its registration spells it, with other versions' spellings
  // after '|'. $A stands for the C++ type of attribute A, %A for the same with
  // the namespace that TensorFlow's lists of types write.
  const char* spellings;
  // The dtypes of attribute T that it is registered for; "": not narrowed.
  const char* types;
};

// CPU kernels of TensorFlow 1.x, sorted by op. About 25 of arithmetic,
// reductions, quantization, identities and tensor arrays were compared with the
// registrations of TensorFlow 1.5 one by one; the others follow its naming and
// were not. int8 came to divisions after 1.5.
absl::Span<const KernelClass> TensorFlowKernelTable();

}  // namespace optfarm::graph

#endif  // OPTFARM_ENGINE_GRAPH_TENSORFLOW_KERNEL_TABLE_H_
