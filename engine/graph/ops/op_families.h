// The tables of rows, one function for each family. Only op_table.cc and tests
// read them; the engine asks op_table.h for one op.

#ifndef OPTFARM_ENGINE_GRAPH_OPS_OP_FAMILIES_H_
#define OPTFARM_ENGINE_GRAPH_OPS_OP_FAMILIES_H_

#include "absl/types/span.h"
#include "engine/graph/ops/op_row.h"

namespace optfarm::graph {

// THREADS: any; the tables are constant. An op stands in one of them, once.
absl::Span<const OpRow> ArrayOps();
absl::Span<const OpRow> ControlFlowOps();
absl::Span<const OpRow> ImageOps();
absl::Span<const OpRow> LayerOps();
absl::Span<const OpRow> LinearAlgebraOps();
absl::Span<const OpRow> MathOps();
absl::Span<const OpRow> NnOps();
absl::Span<const OpRow> OtherFormatOps();
absl::Span<const OpRow> QuantizedOps();
absl::Span<const OpRow> RandomOps();
absl::Span<const OpRow> StateOps();
absl::Span<const OpRow> StringOps();
absl::Span<const OpRow> LinearQuantizationOps();

}  // namespace optfarm::graph

#endif  // OPTFARM_ENGINE_GRAPH_OPS_OP_FAMILIES_H_
