// The table behind tensorflow_kernels.h.

#ifndef OPTFARM_ENGINE_GRAPH_OPS_TENSORFLOW_KERNEL_TABLE_H_
#define OPTFARM_ENGINE_GRAPH_OPS_TENSORFLOW_KERNEL_TABLE_H_

#include "absl/types/span.h"

namespace optfarm::graph {

struct KernelClass {
  const char* op;
  // The class as its registration spells it, with other versions' spellings
  // after '|'. A spelling too many does no harm: nothing is called so. $A
  // stands for the C++ type of attribute A, %A for the same with the namespace
  // that TensorFlow's lists of types write.
  const char* spellings;
  // The dtypes of attribute T that it is registered for; "": not narrowed.
  const char* types;
};

// CPU kernels of TensorFlow 1.x, sorted by op. Every class was compared with
// the registrations of TensorFlow's sources: of early 2017 (about 1.2), and of
// later ones where those had changed. Not found there: safe_pow, and the form
// with $Tidx of All and Any. Of the dtypes of elementwise ops those of 1.2 were
// compared, and int8 and complex ones that came later where they are listed;
// bfloat16, which some took in after 1.5, is left out.
absl::Span<const KernelClass> TensorFlowKernelTable();

}  // namespace optfarm::graph

#endif  // OPTFARM_ENGINE_GRAPH_OPS_TENSORFLOW_KERNEL_TABLE_H_
