#include "engine/formats/onnx/raising/raising_table.h"

#include "absl/container/flat_hash_map.h"

namespace optfarm::formats {

const RaisingRow* FindRaising(absl::string_view op) {
  static const auto* const kRows = [] {
    auto* rows = new absl::flat_hash_map<absl::string_view, const RaisingRow*>;
    for (const auto table :
         {ElementwiseRaisings(), ActivationRaisings(), ReductionRaisings(),
          ConvolutionRaisings(), PoolingRaisings(), NormalizationRaisings(),
          MatrixRaisings(), ShapeRaisings(), MovingRaisings(),
          SlicingRaisings(), IndexingRaisings(), ImageRaisings(),
          QuantizationRaisings(), LayerRaisings(), AxesRaisings(),
          BlockRaisings(), SignalRaisings(), LiteLstmRaisings()}) {
      for (const RaisingRow& row : table) rows->emplace(row.op, &row);
    }
    return rows;
  }();
  const auto found = kRows->find(op);
  return found == kRows->end() ? nullptr : found->second;
}

}  // namespace optfarm::formats
