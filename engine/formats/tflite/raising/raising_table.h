// How each op becomes operators of TensorFlow Lite: one row an op. To teach the
// writer an op, write its row into the table of its family (layer_raisings.cc,
// elementwise_raisings.cc, ...), and a function where no given one fits.

#ifndef OPTFARM_ENGINE_FORMATS_TFLITE_RAISING_RAISING_TABLE_H_
#define OPTFARM_ENGINE_FORMATS_TFLITE_RAISING_RAISING_TABLE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/formats/tflite/raising/model_draft.h"
#include "engine/formats/tflite/raising/node_raiser.h"

namespace optfarm::formats::tflite_raising {

// Emits the operators of one node.
// ERRORS: why the node cannot be written, for the list that the user gets.
using RaiseFunction = absl::Status (*)(NodeRaiser& node);

struct RaisingRow {
  absl::string_view op;
  RaiseFunction raise = nullptr;
  // For functions that serve several ops.
  tflite::BuiltinOperator builtin{};
  ScaleRule rule = ScaleRule::kFloatOnly;
};

// nullptr for an op that cannot be written.
const RaisingRow* FindRaising(absl::string_view op);

// --- The families ------------------------------------------------------------

absl::Span<const RaisingRow> LayerRaisings();
absl::Span<const RaisingRow> WindowRaisings();
absl::Span<const RaisingRow> ElementwiseRaisings();
absl::Span<const RaisingRow> ReductionRaisings();
absl::Span<const RaisingRow> ArrangementRaisings();
absl::Span<const RaisingRow> SelectionRaisings();
absl::Span<const RaisingRow> NormalizationRaisings();
absl::Span<const RaisingRow> QuantizationRaisings();
absl::Span<const RaisingRow> ImageRaisings();
absl::Span<const RaisingRow> RecurrentRaisings();

}  // namespace optfarm::formats::tflite_raising

#endif  // OPTFARM_ENGINE_FORMATS_TFLITE_RAISING_RAISING_TABLE_H_
