// Which ONNX nodes stand for a graph's op: one row for each op, in a table for
// each family. To write another op, add its row to the table of its family
// (raise_math.cc, raise_nn.cc, ...).

#ifndef OPTFARM_ENGINE_FORMATS_ONNX_RAISING_RAISING_TABLE_H_
#define OPTFARM_ENGINE_FORMATS_ONNX_RAISING_RAISING_TABLE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/formats/onnx/raising/node_raiser.h"

namespace optfarm::formats {

// Emits what stands for the node and sets its outputs.
// ERRORS: any; the message says why ONNX cannot hold the node, without naming
// it.
using RaiseFunction = absl::Status (*)(NodeRaiser& n);

struct RaisingRow {
  const char* op = "";
  RaiseFunction raise = nullptr;
  // For functions that serve several ops: ONNX's name.
  const char* onnx_op = "";
  // Reads complex numbers, which are floats with an axis of two parts behind
  // the graph's (raise_signal.cc). Other ops refuse them.
  bool takes_complex = false;
};

// nullptr when there is no row for the op.
const RaisingRow* FindRaising(absl::string_view op);

// The tables.
absl::Span<const RaisingRow> ElementwiseRaisings();
absl::Span<const RaisingRow> ActivationRaisings();
absl::Span<const RaisingRow> ReductionRaisings();
absl::Span<const RaisingRow> ConvolutionRaisings();
absl::Span<const RaisingRow> PoolingRaisings();
absl::Span<const RaisingRow> NormalizationRaisings();
absl::Span<const RaisingRow> MatrixRaisings();
absl::Span<const RaisingRow> ShapeRaisings();
absl::Span<const RaisingRow> MovingRaisings();
absl::Span<const RaisingRow> SlicingRaisings();
absl::Span<const RaisingRow> IndexingRaisings();
absl::Span<const RaisingRow> ImageRaisings();
absl::Span<const RaisingRow> QuantizationRaisings();
absl::Span<const RaisingRow> LayerRaisings();
absl::Span<const RaisingRow> AxesRaisings();
absl::Span<const RaisingRow> BlockRaisings();
absl::Span<const RaisingRow> SignalRaisings();
absl::Span<const RaisingRow> LiteLstmRaisings();

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_ONNX_RAISING_RAISING_TABLE_H_
