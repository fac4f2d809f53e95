#include "engine/formats/onnx/lowering_table.h"

#include <algorithm>
#include <map>
#include <utility>

namespace optfarm::formats {
namespace {

using Key = std::pair<absl::string_view, absl::string_view>;

// The families, in the order of their names.
constexpr absl::Span<const LoweringRow> (*kFamilies[])() = {
    ActivationLowerings,
    BasicLowerings,
    ControlFlowLowerings,
    ConvolutionLowerings,
    EinsumLowerings,
    ElementwiseLowerings,
    IndexingLowerings,
    LayerLowerings,
    MicrosoftLowerings,
    MicrosoftQuantizedLowerings,
    NormalizationLowerings,
    PaddingLowerings,
    PoolingLowerings,
    QuantizedLowerings,
    RecurrentLowerings,
    ReductionLowerings,
    ResizeLowerings,
    SamplingLowerings,
    ShapingLowerings,
    SignalLowerings,
    SlicingLowerings,
    TransformerLowerings,
    TransposedConvolutionLowerings,
};

const std::map<Key, std::vector<const LoweringRow*>>& Table() {
  static const auto* const table = [] {
    auto* made = new std::map<Key, std::vector<const LoweringRow*>>;
    for (const auto family : kFamilies) {
      for (const LoweringRow& row : family()) {
        (*made)[{row.domain, row.op}].push_back(&row);
      }
    }
    return made;
  }();
  return *table;
}

}  // namespace

const LoweringRow* FindLowering(absl::string_view domain, absl::string_view op,
                                int opset) {
  const auto found = Table().find({domain, op});
  if (found == Table().end()) return nullptr;
  for (const LoweringRow* row : found->second) {
    if (opset >= row->first && opset <= row->last) return row;
  }
  return nullptr;
}

std::vector<const LoweringRow*> AllLowerings() {
  std::vector<const LoweringRow*> rows;
  for (const auto& [key, versions] : Table()) {
    rows.insert(rows.end(), versions.begin(), versions.end());
  }
  return rows;
}

}  // namespace optfarm::formats
