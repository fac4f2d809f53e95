// Looks rows up by op.

#include "engine/formats/tflite/raising/raising_table.h"

#include "absl/container/flat_hash_map.h"

namespace optfarm::formats::tflite_raising {

const RaisingRow* FindRaising(absl::string_view op) {
  static const auto* const rows = [] {
    auto* by_op = new absl::flat_hash_map<absl::string_view, const RaisingRow*>;
    for (const auto family :
         {LayerRaisings(), WindowRaisings(), ElementwiseRaisings(),
          ReductionRaisings(), ArrangementRaisings(), SelectionRaisings(),
          NormalizationRaisings(), QuantizationRaisings(), ImageRaisings(),
          RecurrentRaisings()}) {
      for (const RaisingRow& row : family) by_op->emplace(row.op, &row);
    }
    return by_op;
  }();
  const auto it = rows->find(op);
  return it == rows->end() ? nullptr : it->second;
}

}  // namespace optfarm::formats::tflite_raising
