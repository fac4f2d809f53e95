// Which ops of our table TensorFlow 1.4 does not have: the version that late
// attributes (op_defs.h) are told apart at too.

#ifndef OPTFARM_ENGINE_GRAPH_LATE_OPS_H_
#define OPTFARM_ENGINE_GRAPH_LATE_OPS_H_

#include "absl/strings/string_view.h"

namespace optfarm::graph {

// Whether an op of our table came to TensorFlow after version 1.4. Ops that we
// do not know are not late. THREADS: any.
bool IsLateOp(absl::string_view op);

}  // namespace optfarm::graph

#endif  // OPTFARM_ENGINE_GRAPH_LATE_OPS_H_
