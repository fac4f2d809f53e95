// Which operators we read: a row for each operator and range of versions, in a
// list for each family (*_lowerings.cc). A new family adds its function below
// and to lowering_table.cc.

#ifndef OPTFARM_ENGINE_FORMATS_ONNX_LOWERING_TABLE_H_
#define OPTFARM_ENGINE_FORMATS_ONNX_LOWERING_TABLE_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/formats/onnx/lowering.h"

namespace optfarm::formats {

// For rows that hold for all versions to come.
inline constexpr int kNoLaterVersion = 1 << 20;

struct LoweringRow {
  const char* op;
  LowerFunction lower;
  // First and last opset of the domain that the row is for.
  int first = 1;
  int last = kNoLaterVersion;
  // "" is ONNX's own.
  const char* domain = "";
};

// Families.
absl::Span<const LoweringRow> ActivationLowerings();
absl::Span<const LoweringRow> BasicLowerings();
absl::Span<const LoweringRow> ControlFlowLowerings();
absl::Span<const LoweringRow> ConvolutionLowerings();
absl::Span<const LoweringRow> EinsumLowerings();
absl::Span<const LoweringRow> ElementwiseLowerings();
absl::Span<const LoweringRow> IndexingLowerings();
absl::Span<const LoweringRow> LayerLowerings();
absl::Span<const LoweringRow> MicrosoftLowerings();
absl::Span<const LoweringRow> MicrosoftQuantizedLowerings();
absl::Span<const LoweringRow> NormalizationLowerings();
absl::Span<const LoweringRow> PaddingLowerings();
absl::Span<const LoweringRow> PoolingLowerings();
absl::Span<const LoweringRow> QuantizedLowerings();
absl::Span<const LoweringRow> RecurrentLowerings();
absl::Span<const LoweringRow> ReductionLowerings();
absl::Span<const LoweringRow> ResizeLowerings();
absl::Span<const LoweringRow> SamplingLowerings();
absl::Span<const LoweringRow> ShapingLowerings();
absl::Span<const LoweringRow> SignalLowerings();
absl::Span<const LoweringRow> SlicingLowerings();
absl::Span<const LoweringRow> TransformerLowerings();
absl::Span<const LoweringRow> TransposedConvolutionLowerings();

// `domain` is "" for ONNX's own, however the file spells it. nullptr for an
// operator, or a version of one, that we do not read.
const LoweringRow* FindLowering(absl::string_view domain, absl::string_view op,
                                int opset);

// All rows, by domain and operator; for documentation and tests.
std::vector<const LoweringRow*> AllLowerings();

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_ONNX_LOWERING_TABLE_H_
