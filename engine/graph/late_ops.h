// Which ops of our table TensorFlow 1.4 does not have: the version that late
// attributes (op_defs.h) are told apart at too.

#ifndef OPTFARM_ENGINE_GRAPH_LATE_OPS_H_
#define OPTFARM_ENGINE_GRAPH_LATE_OPS_H_

#include "absl/strings/string_view.h"

namespace optfarm::graph {

// Whether an op of our table came to TensorFlow after version 1.4, by its op
// lists of September and of early November 2017, just before and after that
// version. Ops that only the second has may be in 1.4 or not: RightShift counts
// as late, LogMatrixDeterminant does not. Recurrent blocks (LSTMBlockCell, ...)
// came with contrib then and are not late. Ops that we do not know are not late
// either. THREADS: any.
bool IsLateOp(absl::string_view op);

}  // namespace optfarm::graph

#endif  // OPTFARM_ENGINE_GRAPH_LATE_OPS_H_
